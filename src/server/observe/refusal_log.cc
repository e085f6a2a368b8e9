#include "server/observe/refusal_log.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir::server::observe {

void RefusalLog::note(std::string_view reason, Clock::time_point now) {
  std::int64_t num_refused = 0;
  {
    const std::lock_guard lock(mutex_);
    ++num_untold_;
    if (has_told_ && now - told_at_ < std::chrono::seconds(1)) return;
    has_told_ = true;
    told_at_ = now;
    num_refused = std::exchange(num_untold_, 0);
  }
  const std::string text = printable_line(reason);
  warn_(num_refused == 1 ? fmt::format("a request was refused: {}", text)
                         : fmt::format("{} requests were refused, the last: {}", num_refused, text));
}

}  // namespace kvasir::server::observe
