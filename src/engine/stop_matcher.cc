#include "engine/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace kvasir {

StopMatcher::Piece StopMatcher::push(std::string_view text, const MayEnd& may_end) {
  const std::size_t num_old_bytes = held_.size();
  held_ += text;
  const Match match = first_match(num_old_bytes, may_end);
  if (match.stop != nullptr) {
    held_.resize(match.begin + (include_stop_ ? match.stop->size() : 0));
    return {std::exchange(held_, {}), *match.stop};
  }
  const std::size_t num_ready_bytes = held_.size() - num_bytes_to_hold();
  Piece piece{held_.substr(0, num_ready_bytes), std::nullopt};
  held_.erase(0, num_ready_bytes);
  num_shown_bytes_ += num_ready_bytes;
  return piece;
}

std::string StopMatcher::flush() { return std::exchange(held_, {}); }

// Among the stop strings that end behind the first num_old_bytes.
StopMatcher::Match StopMatcher::first_match(std::size_t num_old_bytes, const MayEnd& may_end) const {
  Match best;
  for (const std::string& stop : stops_) {
    std::size_t begin = num_old_bytes < stop.size() ? 0 : num_old_bytes - stop.size() + 1;
    for (; (begin = held_.find(stop, begin)) != std::string::npos; ++begin) {
      const bool better = best.stop == nullptr || begin < best.begin ||
                          (begin == best.begin && stop.size() > best.stop->size());
      if (!better) break;
      if (!may_end(num_shown_bytes_ + begin + (include_stop_ ? stop.size() : 0))) continue;
      best = {begin, &stop};
      break;
    }
  }
  return best;
}

// The longest end of the text that is the beginning of a stop string, but not all of one.
std::size_t StopMatcher::num_bytes_to_hold() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    const std::string_view start = std::string_view(stop).substr(0, stop.size() - 1);
    for (std::size_t length = std::min(start.size(), held_.size()); length > longest; --length) {
      if (held_.ends_with(start.substr(0, length))) {
        longest = length;
        break;
      }
    }
  }
  return longest;
}

}  // namespace kvasir
