// The memory that is planned for requests: connections, bodies and answers share it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "server/api_error.h"
#include "server/limits.h"

namespace kvasir::server {

// The buffers of one connection, filled: a head, and what is read at once or comes behind it; with TLS also
// those that Asio has on both sides of it.
constexpr std::int64_t connection_bytes(const Limits& limits, bool is_secure) {
  return (16 << 10) + (is_secure ? 4 * (17 << 10) : 0) + limits.header_bytes.max;
}
// The part of it for gRPC's connections and the messages it reads: the limit of its own quota.
constexpr std::int64_t grpc_bytes(std::int64_t request_memory_bytes) { return request_memory_bytes / 4; }
// The memory of a whole body: its bytes, as JSON, as text, as tokens, which may be as many as its bytes, and
// each item of a list as JSON. A body that is not whole counts its bytes alone, so that a client that sends
// half of one does not keep others out for more than that.
std::int64_t body_memory_bytes(std::string_view body);
inline constexpr std::int64_t kBytesPerTextByte = 6;  // of a body without lists

// A tenant that has some may have as much as is still free for others, so that however slowly one key sends
// what it sends, another finds room.
//
// Thread safety: any thread.
class RequestMemory {
 public:
  // 0: without a limit.
  explicit RequestMemory(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  RequestMemory(const RequestMemory&) = delete;
  RequestMemory& operator=(const RequestMemory&) = delete;

  std::int64_t limit_bytes() const {
    const std::lock_guard lock(mutex_);
    return limit_bytes_;
  }
  // Less for all from here on, to the end: what a protocol takes that counts by itself.
  void set_aside(std::int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_bytes_ -= bytes;
  }
  std::int64_t used_bytes() const {
    const std::lock_guard lock(mutex_);
    return used_bytes_;
  }

  // One user's part, given back at its end.
  //
  // Thread safety: none; each share has one user at a time.
  class Share {
   public:
    // Without a name it is nobody's, and only the limit counts.
    explicit Share(RequestMemory& memory, std::string tenant = {})
        : memory_(&memory), tenant_(std::move(tenant)) {}
    Share(Share&& other) noexcept
        : memory_(other.memory_), tenant_(std::move(other.tenant_)), bytes_(other.bytes_) {
      other.bytes_ = 0;
    }
    Share& operator=(Share&&) = delete;
    ~Share() { set(0); }

    void belong_to(const std::string& tenant);
    // Resizes the share, or leaves it where that is too much. Errors: 503 when others have the memory, 413
    // when this and `beside_bytes`, the same request's other memory, would never fit.
    ApiStatus resize(std::int64_t bytes, std::int64_t beside_bytes = 0);
    // The same for memory that is taken anyway: it may exceed the limit, and leaves others less.
    void set(std::int64_t bytes);

   private:
    RequestMemory* memory_;
    std::string tenant_;
    std::int64_t bytes_ = 0;
  };

 private:
  // The bytes that a tenant has. Requires: mutex_ held, as the other.
  std::int64_t used_by(const std::string& tenant) const;
  void add(const std::string& tenant, std::int64_t bytes);

  mutable std::mutex mutex_;
  std::int64_t limit_bytes_;
  std::int64_t used_bytes_ = 0;
  std::map<std::string, std::int64_t> tenants_;  // those that have some
};

}  // namespace kvasir::server
