#include "bench/kernels/parallel_timing.h"

#include <time.h>

#include <algorithm>
#include <barrier>
#include <limits>
#include <thread>
#include <vector>

namespace kvasir::bench {
namespace {

double thread_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double fastest_seconds(int num_threads, int repetitions, const std::function<void(int)>& work) {
  std::vector<double> seconds(num_threads);
  double fastest = std::numeric_limits<double>::infinity();
  std::barrier together(num_threads);
  const auto run = [&](int thread) {
    for (int i = 0; i < repetitions; ++i) {
      together.arrive_and_wait();
      const double begin = thread_cpu_seconds();
      work(thread);
      seconds[thread] = thread_cpu_seconds() - begin;
      together.arrive_and_wait();
      if (thread == 0) fastest = std::min(fastest, *std::max_element(seconds.begin(), seconds.end()));
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < num_threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  return fastest;
}

}  // namespace kvasir::bench
