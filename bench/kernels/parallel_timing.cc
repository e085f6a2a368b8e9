#include "bench/kernels/parallel_timing.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

namespace kvasir::bench {

double fastest_seconds(int num_threads, int repetitions, const std::function<void(int)>& work) {
  using Clock = std::chrono::steady_clock;
  double fastest = std::numeric_limits<double>::infinity();
  std::barrier together(num_threads);
  const auto run = [&](int thread) {
    for (int i = 0; i < repetitions; ++i) {
      together.arrive_and_wait();
      const auto begin = Clock::now();
      work(thread);
      together.arrive_and_wait();
      if (thread == 0)
        fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count());
    }
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < num_threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  return fastest;
}

}  // namespace kvasir::bench
