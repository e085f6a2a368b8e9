#include "cli/markdown/line_start.h"

#include <algorithm>

namespace kvasir::cli {
namespace {

using Kind = LineStart::Kind;

constexpr int kMaxHeadingLevel = 6;
constexpr std::size_t kMaxDigits = 9;  // CommonMark 0.31, section 5.2
constexpr std::size_t kMinFence = 3;
constexpr std::size_t kMinRule = 3;
// Text that is held back until the end of its line must not grow to a whole answer.
constexpr std::size_t kMaxFenceLineBytes = 200;
constexpr std::size_t kMaxRuleBytes = 200;
constexpr std::size_t kMaxTableRowBytes = 4000;

class LineStartReader {
 public:
  LineStartReader(std::string_view text, bool is_complete)
      : text_(text), is_complete_(is_complete), indent_(std::min(text.find_first_not_of(' '), text.size())) {}

  LineStart read() const {
    if (indent_ == text_.size()) return is_complete_ ? make(Kind::kBlank, text_.size()) : LineStart();
    switch (const char c = text_[indent_]) {
      case '#':
        return read_heading();
      case '>':
        return read_quote();
      case '`':
      case '~':
        return read_fence();
      case '|':
        return whole_line(Kind::kTableRow, kMaxTableRowBytes);
      case '-':
      case '*':
      case '+':
      case '_':
        return read_bullet_or_rule();
      default:
        return c >= '0' && c <= '9' ? read_number() : text();
    }
  }

 private:
  LineStart make(Kind kind, std::size_t num_bytes, int level = 0) const {
    return {kind, indent_, num_bytes, level};
  }
  LineStart text() const { return make(Kind::kText, indent_); }
  LineStart unless_complete(LineStart start) const { return is_complete_ ? start : LineStart(); }
  // A kind that the end of the line decides.
  LineStart whole_line(Kind kind, std::size_t max_bytes) const {
    if (is_complete_) return make(kind, text_.size());
    return text_.size() > max_bytes ? text() : LineStart();
  }

  std::size_t end_of_run() const {
    return std::min(text_.find_first_not_of(text_[indent_], indent_), text_.size());
  }

  LineStart read_heading() const {
    const std::size_t end = end_of_run();
    const auto level = static_cast<int>(end - indent_);
    if (level > kMaxHeadingLevel) return text();
    if (end == text_.size()) return unless_complete(make(Kind::kHeading, end, level));
    if (text_[end] != ' ') return text();
    const std::size_t begin = text_.find_first_not_of(' ', end);
    if (begin == text_.npos) return unless_complete(make(Kind::kHeading, text_.size(), level));
    return make(Kind::kHeading, begin, level);
  }

  LineStart read_quote() const {
    const std::size_t end = indent_ + 1;
    if (end == text_.size()) return unless_complete(make(Kind::kQuote, end));
    return make(Kind::kQuote, text_[end] == ' ' ? end + 1 : end);
  }

  LineStart read_fence() const {
    const std::size_t end = end_of_run();
    if (end == text_.size() && !is_complete_) return LineStart();
    if (end - indent_ < kMinFence) return text();
    const bool has_more_marks = text_[indent_] == '`' && text_.find('`', end) != text_.npos;
    return has_more_marks ? text() : whole_line(Kind::kFence, kMaxFenceLineBytes);
  }

  LineStart read_bullet_or_rule() const {
    const char marker = text_[indent_];
    const std::size_t other = text_.find_first_not_of(marker == '+'   ? "+ "
                                                      : marker == '-' ? "- "
                                                      : marker == '*' ? "* "
                                                                      : "_ ",
                                                      indent_);
    if (other == text_.npos) {
      if (!is_complete_) return text_.size() > kMaxRuleBytes ? text() : LineStart();
      const auto num_marks = std::count(text_.begin(), text_.end(), marker);
      if (marker != '+' && static_cast<std::size_t>(num_marks) >= kMinRule)
        return make(Kind::kRule, text_.size());
      return marker != '_' && num_marks == 1 ? make(Kind::kBullet, text_.size()) : text();
    }
    if (marker == '_' || text_[indent_ + 1] != ' ') return text();
    return make(Kind::kBullet, text_.find_first_not_of(' ', indent_ + 1));
  }

  LineStart read_number() const {
    const std::size_t dot = std::min(text_.find_first_not_of("0123456789", indent_), text_.size());
    if (dot - indent_ > kMaxDigits) return text();
    if (dot == text_.size()) return unless_complete(text());
    if (text_[dot] != '.' && text_[dot] != ')') return text();
    if (dot + 1 == text_.size()) return unless_complete(make(Kind::kNumber, text_.size()));
    if (text_[dot + 1] != ' ') return text();
    const std::size_t begin = text_.find_first_not_of(' ', dot + 1);
    if (begin == text_.npos) return unless_complete(make(Kind::kNumber, text_.size()));
    return make(Kind::kNumber, begin);
  }

  const std::string_view text_;
  const bool is_complete_;
  const std::size_t indent_;
};

}  // namespace

LineStart read_line_start(std::string_view text, bool is_complete) {
  return LineStartReader(text, is_complete).read();
}

}  // namespace kvasir::cli
