// Ids for answers and requests that nobody gets twice.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::server {

// Unique within a process by a counter, and across processes by 64 random bits.
//
// Thread safety: any thread may call next().
class IdSource {
 public:
  IdSource();

  // "chatcmpl-" gives "chatcmpl-0123...", 24 hex digits.
  std::string next(std::string_view prefix);

 private:
  const std::uint64_t process_;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace kvasir::server
