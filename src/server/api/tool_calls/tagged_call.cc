// A name, then each argument between marks: <function=N><parameter=K>V</parameter></function>.
#include <algorithm>
#include <array>
#include <utility>

#include "base/json_writer.h"
#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

// A type in an attribute goes before the schema's. The mark behind them may have their last quote.
JsonTypes types_by(std::string_view attributes, JsonTypes types) {
  if (attributes.contains("string=\"true") || attributes.contains("type=\"string")) return kStringType;
  const bool is_json = attributes.contains("string=\"false") || attributes.contains("type=\"");
  return is_json && types == kStringType ? kAnyType : types;
}

std::string without_cdata(const std::string& value) {
  constexpr std::string_view kOpen = "<![CDATA[", kClose = "]]>";
  const std::string_view inner = without_blanks(value);
  if (!inner.starts_with(kOpen) || !inner.ends_with(kClose)) return value;
  return std::string(inner.substr(kOpen.size(), inner.size() - kOpen.size() - kClose.size()));
}

class TaggedCall final : public CallParser {
 public:
  TaggedCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools)
      : CallParser(syntax, tools), state_(syntax.call_open.empty() ? State::kName : State::kOpen) {}

  TextStep step(char byte) override;

 private:
  enum class State : std::uint8_t { kOpen, kName, kBetween, kKey, kValueOpen, kValue };

  TextStep step_name();
  TextStep step_between();
  TextStep step_key();
  TextStep step_value();
  TextStep end_call();
  // kDone: blanks and all of `mark` have come, and held_ is empty.
  TextStep take(std::string_view mark);
  bool ends_value(std::string_view behind, bool& may_end) const;
  std::size_t num_held_of_value() const;
  void append_value(std::string_view text);
  void end_value(std::string_view last);
  // A value goes out as it comes, unless its type is only known at its end.
  bool is_streamed() const { return types_ == kStringType && !syntax_.has_cdata; }

  State state_;
  std::string held_;  // not decided yet
  std::size_t num_arguments_ = 0;
  JsonTypes types_ = kAnyType;
  bool has_value_begun_ = false;
  std::string value_;  // one that is no mere string, until it is whole
};

TextStep TaggedCall::step(char byte) {
  held_ += byte;
  switch (state_) {
    case State::kOpen: {
      const TextStep step = take(syntax_.call_open);
      if (step != TextStep::kDone) return step;
      state_ = State::kName;
      return TextStep::kMore;
    }
    case State::kName:
      return step_name();
    case State::kBetween:
      return step_between();
    case State::kKey:
      return step_key();
    case State::kValueOpen: {
      const TextStep step = take(syntax_.value_open);
      if (step != TextStep::kDone) return step;
      state_ = State::kValue;
      return TextStep::kMore;
    }
    case State::kValue:
      break;
  }
  return step_value();
}

TextStep TaggedCall::take(std::string_view mark) {
  if (is_call_blank(held_.front())) held_.clear();
  if (held_.empty()) return TextStep::kMore;
  if (!mark.starts_with(held_)) return TextStep::kBad;
  if (held_.size() < mark.size()) return TextStep::kMore;
  held_.clear();
  return TextStep::kDone;
}

// A name without a mark behind it ends with its line, or where the arguments or the call's end begin.
TextStep TaggedCall::step_name() {
  if (held_.size() > kMaxNameBytes) return TextStep::kBad;
  std::string_view name = held_, rest;
  if (!syntax_.name_close.empty()) {
    if (!name.ends_with(syntax_.name_close)) return TextStep::kMore;
    name.remove_suffix(syntax_.name_close.size());
  } else {
    const std::size_t first = name.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return TextStep::kMore;
    if (held_[first] == '{' || held_[first] == '[') return TextStep::kBad;
    const std::size_t end = std::min(
        {name.find('\n', first), name.find(syntax_.key_open, first), name.find(syntax_.call_close, first)});
    if (end == std::string_view::npos) return TextStep::kMore;
    rest = name.substr(end);
    name = name.substr(first, end - first);
  }
  if (!set_tool(without_blanks(name.substr(0, name.find('"'))))) return TextStep::kBad;
  state_ = State::kBetween;
  held_ = std::string(rest);
  return held_.empty() ? TextStep::kMore : step_between();
}

TextStep TaggedCall::step_between() {
  if (is_call_blank(held_.front())) held_.clear();
  if (held_.empty()) return TextStep::kMore;
  // Some leave call_close out.
  if (held_ == syntax_.call_close || held_ == syntax_.close) return end_call();
  if (held_ == syntax_.key_open) {
    held_.clear();
    has_begun_ = true;
    state_ = State::kKey;
    return TextStep::kMore;
  }
  const auto may_be = [&](std::string_view mark) { return mark.starts_with(held_); };
  return may_be(syntax_.key_open) || may_be(syntax_.call_close) || may_be(syntax_.close) ? TextStep::kMore
                                                                                         : TextStep::kBad;
}

TextStep TaggedCall::end_call() {
  has_begun_ = true;
  arguments_ += num_arguments_ == 0 ? "{}" : "}";
  return TextStep::kDone;
}

TextStep TaggedCall::step_key() {
  if (held_.size() > kMaxNameBytes) return TextStep::kBad;
  if (!held_.ends_with(syntax_.key_close)) return TextStep::kMore;
  std::string_view key = std::string_view(held_).substr(0, held_.size() - syntax_.key_close.size());
  const std::string_view attributes = key.substr(std::min(key.find('"'), key.size()));
  key = without_blanks(key.substr(0, key.size() - attributes.size()));
  types_ = types_by(attributes, tool_->types_of(key));
  arguments_ += num_arguments_++ == 0 ? '{' : ',';
  JsonWriter(arguments_).value(key);
  arguments_ += ':';
  if (is_streamed()) arguments_ += '"';
  held_.clear();
  value_.clear();
  has_value_begun_ = false;
  state_ = syntax_.value_open.empty() ? State::kValue : State::kValueOpen;
  return TextStep::kMore;
}

// The mark behind a value counts only where the next argument or the call's end follows, so a value may well
// contain it.
TextStep TaggedCall::step_value() {
  if (syntax_.has_value_lines && !has_value_begun_ && held_ == "\n") {
    has_value_begun_ = true;
    held_.clear();
    return TextStep::kMore;
  }
  for (;;) {
    const std::size_t close = held_.find(syntax_.value_close);
    if (close == std::string::npos) {
      const std::size_t num_ready = held_.size() - num_held_of_value();
      append_value(std::string_view(held_).substr(0, num_ready));
      held_.erase(0, num_ready);
      return TextStep::kMore;
    }
    const std::size_t behind = close + syntax_.value_close.size();
    std::string rest = held_.substr(behind);
    rest.erase(0, std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    bool may_end = false;
    if (ends_value(rest, may_end)) {
      end_value(std::string_view(held_).substr(0, close));
      held_ = std::move(rest);
      state_ = State::kBetween;
      return step_between();
    }
    if (may_end) return TextStep::kMore;
    append_value(std::string_view(held_).substr(0, behind));
    held_.erase(0, behind);
  }
}

bool TaggedCall::ends_value(std::string_view behind, bool& may_end) const {
  for (const std::string_view mark : {syntax_.key_open, syntax_.call_close, syntax_.close}) {
    if (!mark.empty() && behind == mark) return true;
    may_end = may_end || mark.starts_with(behind);
  }
  return false;
}

// The text's end that may belong to the mark behind the value, or be the line break before it.
std::size_t TaggedCall::num_held_of_value() const {
  std::size_t length = partial_mark(held_, syntax_.value_close);
  if (!syntax_.has_value_lines) return length;
  if (length < held_.size() && held_[held_.size() - length - 1] == '\n') ++length;
  return length;
}

void TaggedCall::append_value(std::string_view text) {
  if (text.empty()) return;
  has_value_begun_ = true;
  if (!is_streamed()) {
    value_ += text;
    return;
  }
  for (const char byte : text) append_json_byte(byte, arguments_);
}

void TaggedCall::end_value(std::string_view last) {
  if (syntax_.has_value_lines && last.ends_with('\n')) last.remove_suffix(1);
  append_value(last);
  if (is_streamed()) {
    arguments_ += '"';
    return;
  }
  if (syntax_.has_cdata) value_ = without_cdata(value_);
  if (types_ == kStringType) {
    JsonWriter(arguments_).value(std::string_view(value_));
  } else {
    arguments_ += typed_json(value_, types_);
  }
}

}  // namespace

std::unique_ptr<CallParser> make_tagged_call(const ToolCallSyntax& syntax,
                                             std::span<const ToolSignature> tools) {
  return std::make_unique<TaggedCall>(syntax, tools);
}

}  // namespace kvasir::server::api
