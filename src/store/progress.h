// The progress that a long transfer reports.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace kvasir::store {

struct Progress {
  std::string_view phase;  // "downloading", "unpacking", ...
  std::int64_t bytes_done = 0;
  std::int64_t bytes_total = 0;  // 0: not known
};

// Called on the thread that does the work, several times a second.
struct TransferEvents {
  // False asks the work to stop: it cleans up and ends with kCancelled.
  std::function<bool(const Progress&)> progress = [](const Progress&) { return true; };
  // One line that a person should see, such as the disk that is needed.
  std::function<void(const std::string&)> note = [](const std::string&) {};
};

}  // namespace kvasir::store
