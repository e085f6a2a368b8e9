// A place for a request's body that is too large to be in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "server/api_error.h"

namespace kvasir::server::http {

// Takes a body piece by piece while it comes. Whoever answers the request finishes the sink (Request::sink). One that
// goes without that was cut, and leaves nothing behind.
//
// Thread safety: write() from one thread at a time.
class BodySink {
 public:
  // Called once from any thread, when the next piece may be written; an error refuses the request.
  using Resume = std::function<void(const ApiStatus& status)>;

  virtual ~BodySink() = default;
  // The most memory that it takes, whatever the body's size.
  virtual std::int64_t memory_bytes() const = 0;
  // True: the next piece may be written at once, and `resume` is not called. An error refuses the request.
  virtual ApiResult<bool> write(std::string_view bytes, Resume resume) = 0;
};

}  // namespace kvasir::server::http
