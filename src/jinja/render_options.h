// Limits of a render, and the clock it may read.
#pragma once

#include <cstddef>
#include <ctime>
#include <functional>

namespace kvasir::jinja {

// Local wall-clock time of the calling thread.
std::tm local_time_now();

struct RenderOptions {
  // Work: one step per evaluated node, per list item touched and per 64 bytes of text touched.
  std::size_t max_steps = 2'000'000;
  std::size_t max_output_bytes = std::size_t{4} << 20;
  // Nesting of macro calls, call blocks and recursive loops.
  std::size_t max_depth = 64;
  // The time that strftime_now sees.
  std::function<std::tm()> now = local_time_now;
};

}  // namespace kvasir::jinja
