// Times the same work on several threads at once.
#pragma once

#include <functional>

namespace kvasir::bench {

// Runs work(thread) on `num_threads` threads `repetitions` times, all starting together, and returns the
// seconds of the fastest repetition; a repetition lasts until its slowest thread is done.
double fastest_seconds(int num_threads, int repetitions, const std::function<void(int)>& work);

}  // namespace kvasir::bench
