// Times the same work on several threads at once.
#pragma once

#include <functional>

namespace kvasir::bench {

// Runs work(thread) on `num_threads` threads `repetitions` times, all starting together, and returns the
// seconds of the fastest repetition: CPU seconds of its busiest thread, so that a neighbour that takes a core
// away does not count.
double fastest_seconds(int num_threads, int repetitions, const std::function<void(int)>& work);

}  // namespace kvasir::bench
