// What connections, bodies and answers may take together of the memory that is planned for requests.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "server/limits.h"

namespace kvasir::server {

// The buffers of one connection, filled: a head, and what is read at once or comes behind it.
constexpr std::int64_t connection_bytes(const Limits& limits) { return (16 << 10) + limits.header_bytes.max; }
// Of a whole body: as it comes, as JSON, as text, as tokens, which may be as many as its bytes; and each item
// of a list as JSON. Before it is whole it takes what has come: who sends half of one and no more shall not
// keep others out for more than that.
std::int64_t body_memory_bytes(std::string_view body);
inline constexpr std::int64_t kBytesPerTextByte = 6;  // of a body without lists

// Thread safety: any thread.
class RequestMemory {
 public:
  // 0: without a limit.
  explicit RequestMemory(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  std::int64_t limit_bytes() const { return limit_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }

  // One user's part, given back at its end.
  //
  // Thread safety: none; each share has one user at a time.
  class Share {
   public:
    explicit Share(RequestMemory& memory) : memory_(&memory) {}
    Share(Share&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) { other.bytes_ = 0; }
    Share& operator=(Share&&) = delete;
    ~Share() { set(0); }

    // What it is from now on; false, and as it was, when that is more than the limit leaves.
    bool resize(std::int64_t bytes);
    // The same for what is there anyway: it may exceed the limit, and leaves others less.
    void set(std::int64_t bytes);

   private:
    RequestMemory* memory_;
    std::int64_t bytes_ = 0;
  };

 private:
  const std::int64_t limit_bytes_;
  std::atomic<std::int64_t> used_bytes_{0};
};

}  // namespace kvasir::server
