// A line for each request, for people: what was asked, what it cost, how it ended.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/observe/access_log.h"

namespace kvasir::server::observe {

// The line of a request, without time and line break; empty for one that nobody looks for: what watchers and pages ask
// all the time with GET, and refusals for load, which have a log of their own.
std::string request_line(const AccessRecord& record);

// Thread safety: all calls, as far as `write` has it.
class RequestLog {
 public:
  // Takes one line without a line break; empty: none is made.
  using Write = std::function<void(std::string_view line)>;
  explicit RequestLog(Write write) : write_(std::move(write)) {}

  void note(const AccessRecord& record) const;

 private:
  const Write write_;
};

}  // namespace kvasir::server::observe
