// The lines that logs have lost.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kvasir::server::observe {

// A log counts the lines that were dropped because nobody took them.
struct DroppedLines {
  std::string log;                      // "access"
  std::function<std::int64_t()> count;  // may be called from any thread
};

}  // namespace kvasir::server::observe
