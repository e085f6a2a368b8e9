#include "cli/markdown/inline_markdown.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

namespace kvasir::cli {
namespace {

constexpr std::string_view kMarkers = "*_~`[]()!<>\\";
constexpr std::string_view kEscapable = "*_~`#|<>\\";
constexpr std::size_t kMaxRunBytes = 3;  // ***: bold and italic

bool is_space(char c) { return c == ' '; }
bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }
bool is_punctuation(char c) { return !is_space(c) && !is_alphanumeric(c) && !is_beyond_ascii(c); }

// How an element that begins somewhere goes on.
struct Match {
  enum class Verdict { kYes, kNo, kUndecided } verdict = Verdict::kNo;
  std::size_t inner_end = 0;  // where what it holds ends
  std::size_t end = 0;        // behind its last marker
  explicit operator bool() const { return verdict == Verdict::kYes; }
  bool is_undecided() const { return verdict == Verdict::kUndecided; }
};

constexpr Match kUndecided{Match::Verdict::kUndecided};

class InlineReader {
 public:
  InlineReader(std::string_view text, const InlineContext& context) : text_(text), context_(context) {}

  InlineText read() {
    while (position_ < text_.size()) {
      // Too much has come without a decision: what begins here is plain text.
      is_last_ = context_.is_complete || text_.size() - position_ > kMaxUndecidedBytes;
      const std::size_t num_bytes = read_element();
      if (num_bytes == 0) break;
      position_ += num_bytes;
    }
    return {std::move(parts_), position_};
  }

 private:
  // Each returns how many bytes it has read; 0: not decided yet.
  std::size_t read_element() {
    switch (text_[position_]) {
      case '\\':
        return read_escape();
      case '`':
        return read_code();
      case '*':
      case '_':
      case '~':
        return read_emphasis();
      case '[':
        return read_link(position_);
      case '!':
        return read_image();
      case '<':
        return read_address();
      default:
        return take_plain(1);
    }
  }

  std::size_t take_plain(std::size_t num_bytes) {
    add(text_.substr(position_, num_bytes), context_.style);
    return num_bytes;
  }

  void add(std::string_view text, const TextStyle& style) {
    if (text.empty()) return;
    if (!parts_.empty() && parts_.back().style == style) {
      parts_.back().text += text;
    } else {
      parts_.push_back({std::string(text), style});
    }
  }

  std::size_t read_escape() {
    if (position_ + 1 == text_.size()) return is_last_ ? take_plain(1) : 0;
    const char escaped = text_[position_ + 1];
    if (!kEscapable.contains(escaped)) return take_plain(is_beyond_ascii(escaped) ? 1 : 2);
    add(text_.substr(position_ + 1, 1), context_.style);
    return 2;
  }

  std::size_t read_code() {
    const Match match = match_code(position_);
    if (match.is_undecided()) return 0;
    const std::size_t num_marks = run_at(position_);
    if (!match) return take_plain(num_marks);
    std::string_view code = text_.substr(position_ + num_marks, match.inner_end - position_ - num_marks);
    const bool is_padded = code.size() > 2 && code.front() == ' ' && code.back() == ' ';
    if (is_padded) code = code.substr(1, code.size() - 2);
    TextStyle style = context_.style;
    style.colour = TextColour::kCyan;
    const std::string_view mark = context_.shows_code_marks ? "`" : "";
    add(mark, style);
    add(code, style);
    add(mark, style);
    return match.end - position_;
  }

  std::size_t read_emphasis() {
    const Match match = match_emphasis(position_);
    if (match.is_undecided()) return 0;
    const std::size_t num_marks = run_at(position_);
    if (!match) return take_plain(num_marks);
    InlineContext inner = context_;
    inner.before = text_[position_];
    inner.is_complete = true;
    if (text_[position_] == '~') {
      inner.style.struck = true;
    } else {
      inner.style.bold |= num_marks >= 2;
      inner.style.italic |= num_marks != 2;
    }
    add_parsed(position_ + num_marks, match.inner_end, inner);
    return match.end - position_;
  }

  std::size_t read_image() {
    if (position_ + 1 == text_.size()) return is_last_ ? take_plain(1) : 0;
    return text_[position_ + 1] == '[' ? read_link(position_ + 1) : take_plain(1);
  }

  // `begin`: of its bracket, which an image has a mark before.
  std::size_t read_link(std::size_t begin) {
    const Match match = match_link(begin);
    if (match.is_undecided()) return 0;
    if (!match) return take_plain(begin + 1 - position_);
    InlineContext inner = context_;
    inner.before = '[';
    inner.is_complete = true;
    inner.style.underlined = true;
    const std::string_view label = text_.substr(begin + 1, match.inner_end - begin - 1);
    std::string_view address = text_.substr(match.inner_end + 2, match.end - match.inner_end - 3);
    address = address.substr(0, address.find(' '));  // a title may follow
    add_parsed(begin + 1, match.inner_end, inner);
    if (address != label && !address.empty()) {
      TextStyle style = context_.style;
      style.dim = true;
      add(label.empty() ? "(" : " (", style);
      add(address, style);
      add(")", style);
    }
    return match.end - position_;
  }

  std::size_t read_address() {
    constexpr std::array<std::string_view, 3> kSchemes = {"<https://", "<http://", "<mailto:"};
    const std::string_view rest = text_.substr(position_);
    for (const std::string_view scheme : kSchemes) {
      if (!is_last_ && rest.size() < scheme.size() && scheme.starts_with(rest)) return 0;
      if (!rest.starts_with(scheme)) continue;
      const std::size_t end = rest.find_first_of("> ");
      if (end == rest.npos) return is_last_ ? take_plain(1) : 0;
      if (rest[end] == ' ') return take_plain(1);
      TextStyle style = context_.style;
      style.underlined = true;
      add(rest.substr(1, end - 1), style);
      return end + 1;
    }
    return take_plain(1);
  }

  void add_parsed(std::size_t begin, std::size_t end, const InlineContext& context) {
    for (const StyledText& part : parse_inline(text_.substr(begin, end - begin), context).parts) {
      add(part.text, part.style);
    }
  }

  std::size_t run_at(std::size_t begin) const {
    const std::size_t end = text_.find_first_not_of(text_[begin], begin);
    return (end == text_.npos ? text_.size() : end) - begin;
  }

  // Whether a run of markers that ends there may become longer.
  bool is_open_end(std::size_t end) const { return end == text_.size() && !is_last_; }

  Match not_found() const { return is_last_ ? Match() : kUndecided; }

  Match match_code(std::size_t begin) const {
    const std::size_t num_marks = run_at(begin);
    if (is_open_end(begin + num_marks)) return kUndecided;
    std::size_t at = begin + num_marks;
    while ((at = text_.find('`', at)) != text_.npos) {
      const std::size_t closing = run_at(at);
      if (is_open_end(at + closing)) return kUndecided;
      if (closing == num_marks) return {Match::Verdict::kYes, at, at + closing};
      at += closing;
    }
    return not_found();
  }

  Match match_link(std::size_t begin) const {
    int depth = 0;
    std::size_t at = begin;
    for (; at < text_.size(); ++at) {
      if (text_[at] == '\\') {
        ++at;
      } else if (text_[at] == '[') {
        ++depth;
      } else if (text_[at] == ']' && --depth == 0) {
        break;
      }
    }
    if (at >= text_.size() || is_open_end(at + 1)) return not_found();
    if (at + 1 == text_.size() || text_[at + 1] != '(') return {};
    int open = 0;
    for (std::size_t end = at + 1; end < text_.size(); ++end) {
      if (text_[end] == '(') ++open;
      if (text_[end] == ')' && --open == 0) return {Match::Verdict::kYes, at, end + 1};
    }
    return not_found();
  }

  bool opens(std::size_t begin, std::size_t num_marks) const {
    const char before = begin == 0 ? context_.before : text_[begin - 1];
    const char after = begin + num_marks < text_.size() ? text_[begin + num_marks] : ' ';
    if (is_space(after)) return false;
    if (is_punctuation(after) && !is_space(before) && !is_punctuation(before)) return false;
    if (text_[begin] == '_') return !is_alphanumeric(before) && !is_beyond_ascii(before);
    return num_marks > 1 || !is_alphanumeric(before) || !is_alphanumeric(after);
  }

  bool closes(std::size_t begin, std::size_t num_marks) const {
    const char before = begin == 0 ? context_.before : text_[begin - 1];
    const char after = begin + num_marks < text_.size() ? text_[begin + num_marks] : ' ';
    if (is_space(before)) return false;
    // "**Note:**text" is meant as bold, though CommonMark does not say so.
    const bool is_strict = num_marks == 1;
    if (is_strict && is_punctuation(before) && !is_space(after) && !is_punctuation(after)) return false;
    if (text_[begin] == '_') return !is_alphanumeric(after) && !is_beyond_ascii(after);
    return true;
  }

  Match match_emphasis(std::size_t begin) const {
    const char marker = text_[begin];
    const std::size_t num_marks = run_at(begin);
    if (is_open_end(begin + num_marks)) return kUndecided;
    const bool is_of_length = marker == '~' ? num_marks == 2 : num_marks <= kMaxRunBytes;
    if (!is_of_length || !opens(begin, num_marks)) return {};
    std::vector<std::size_t> inner;  // runs that opened within and are not closed
    std::size_t at = begin + num_marks;
    while (at < text_.size()) {
      if (text_[at] != marker) {
        at = skip(at);
        continue;
      }
      const std::size_t run = run_at(at);
      if (is_open_end(at + run)) return kUndecided;
      if (closes(at, run)) {
        if (const auto end = close(at, run, num_marks, inner)) {
          return {Match::Verdict::kYes, *end, *end + num_marks};
        }
      } else if (opens(at, run)) {
        inner.push_back(run);
      }
      at += run;
    }
    return not_found();
  }

  // A run of closing markers ends what opened last first. Where those begin that end the whole; nothing: it
  // goes on.
  static std::optional<std::size_t> close(std::size_t at, std::size_t run, std::size_t num_marks,
                                          std::vector<std::size_t>& inner) {
    const bool may_be_inner = std::ranges::find(inner, run) != inner.end();
    if (run == num_marks && !may_be_inner) return at;
    std::size_t rest = run;
    while (!inner.empty() && rest >= inner.back()) {
      rest -= inner.back();
      inner.pop_back();
    }
    if (inner.empty() && rest >= num_marks) return at + (run - rest);
    return std::nullopt;
  }

  // Behind the character at `at`, or the element in which markers mean nothing.
  std::size_t skip(std::size_t at) const {
    if (text_[at] == '\\') return at + 2;
    const Match match = text_[at] == '`' ? match_code(at) : text_[at] == '[' ? match_link(at) : Match();
    if (match) return match.end;
    if (match.is_undecided()) return text_.size();
    return at + (text_[at] == '`' ? run_at(at) : 1);
  }

  const std::string_view text_;
  const InlineContext& context_;
  std::size_t position_ = 0;
  bool is_last_ = false;
  std::vector<StyledText> parts_;
};

}  // namespace

InlineText parse_inline(std::string_view text, const InlineContext& context) {
  return InlineReader(text, context).read();
}

bool is_inline_marker(char c) { return kMarkers.contains(c); }

}  // namespace kvasir::cli
