#include "server/api/tool_calls/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/code_point.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxNesting = 512;
constexpr std::size_t kMaxScalarBytes = 1024;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::int32_t hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

void append_json_byte(char byte, std::string& json) {
  if (byte == '"' || byte == '\\') {
    json += '\\';
    json += byte;
  } else if (byte == '\n') {
    json += "\\n";
  } else if (byte == '\t') {
    json += "\\t";
  } else if (byte == '\r') {
    json += "\\r";
  } else if (static_cast<unsigned char>(byte) < 0x20) {
    fmt::format_to(std::back_inserter(json), "\\u{:04x}", static_cast<unsigned>(byte));
  } else {
    json += byte;
  }
}

TextStep JsonStringReader::step(char byte, std::string& text) {
  if (num_escape_bytes_ > 0) return step_escape(byte, text);
  if (high_surrogate_ != 0 && byte != '\\') return TextStep::kBad;
  if (byte == '"') return TextStep::kDone;
  if (byte == '\\') {
    num_escape_bytes_ = 1;
  } else {
    text += byte;
  }
  return TextStep::kMore;
}

TextStep JsonStringReader::step_escape(char byte, std::string& text) {
  if (num_escape_bytes_ > 1) return step_unicode(byte, text);
  if (byte == 'u') {
    num_escape_bytes_ = 2;
    unit_ = 0;
    return TextStep::kMore;
  }
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
  const std::size_t index = kLetters.find(byte);
  if (index == std::string_view::npos || high_surrogate_ != 0) return TextStep::kBad;
  text += kMeanings[index];
  num_escape_bytes_ = 0;
  return TextStep::kMore;
}

TextStep JsonStringReader::step_unicode(char byte, std::string& text) {
  const std::int32_t digit = hex_digit(byte);
  if (digit < 0) return TextStep::kBad;
  unit_ = unit_ << 4 | static_cast<std::uint32_t>(digit);
  if (++num_escape_bytes_ < 6) return TextStep::kMore;
  num_escape_bytes_ = 0;
  if (high_surrogate_ != 0) {
    if (!is_low_surrogate(unit_)) return TextStep::kBad;
    append_utf8(text, 0x10000 + ((high_surrogate_ - 0xD800) << 10) + (unit_ - 0xDC00));
    high_surrogate_ = 0;
  } else if (is_high_surrogate(unit_)) {
    high_surrogate_ = unit_;
  } else if (is_low_surrogate(unit_)) {
    return TextStep::kBad;
  } else {
    append_utf8(text, unit_);
  }
  return TextStep::kMore;
}

TextStep JsonCopier::step(char byte, std::string& json) {
  switch (state_) {
    case State::kString:
      return step_string(byte, json);
    case State::kEscape:
      return step_escape(byte, json);
    case State::kNumber:
    case State::kLiteral:
      return step_scalar(byte, json);
    default:
      break;
  }
  if (is_blank(byte)) return TextStep::kMore;
  switch (state_) {
    case State::kKeyOrEnd:
      if (byte == '}') return close(byte, json);
      [[fallthrough]];
    case State::kKey:
      if (byte != '"') return TextStep::kBad;
      is_key_ = true;
      state_ = State::kString;
      json += byte;
      return TextStep::kMore;
    case State::kColon:
      if (byte != ':') return TextStep::kBad;
      json += byte;
      state_ = State::kValue;
      return TextStep::kMore;
    case State::kAfter:
      return step_after(byte, json);
    case State::kValueOrEnd:
      if (byte == ']') return close(byte, json);
      [[fallthrough]];
    default:
      return begin_value(byte, json);
  }
}

TextStep JsonCopier::begin_value(char byte, std::string& json) {
  if (byte == '{' || byte == '[') return open(byte, json);
  if (byte == '"') {
    json += byte;
    state_ = State::kString;
    return TextStep::kMore;
  }
  token_ = byte;
  if (byte == '-' || (byte >= '0' && byte <= '9')) {
    state_ = State::kNumber;
    return TextStep::kMore;
  }
  state_ = State::kLiteral;
  return byte == 't' || byte == 'f' || byte == 'n' ? TextStep::kMore : TextStep::kBad;
}

TextStep JsonCopier::step_string(char byte, std::string& json) {
  if (is_pair_ && byte != '\\') return TextStep::kBad;
  if (byte == '\\') {
    token_ += byte;
    state_ = State::kEscape;
    return TextStep::kMore;
  }
  if (byte != '"') {
    append_json_byte(byte, json);
    return TextStep::kMore;
  }
  json += byte;
  if (!is_key_) return end_value();
  is_key_ = false;
  state_ = State::kColon;
  return TextStep::kMore;
}

TextStep JsonCopier::step_escape(char byte, std::string& json) {
  token_ += byte;
  const std::size_t size = token_.size() - (is_pair_ ? 6 : 0);
  if (size == 2) {
    const bool is_known = std::string_view("\"\\/bfnrtu").contains(byte);
    if (!is_known || (is_pair_ && byte != 'u')) return TextStep::kBad;
    if (byte == 'u') return TextStep::kMore;
  } else {
    if (hex_digit(byte) < 0) return TextStep::kBad;
    if (size < 6) return TextStep::kMore;
    std::uint32_t unit = 0;
    for (const char c : std::string_view(token_).substr(token_.size() - 4)) {
      unit = unit << 4 | static_cast<std::uint32_t>(hex_digit(c));
    }
    if (is_pair_ != is_low_surrogate(unit)) return TextStep::kBad;
    state_ = State::kString;
    is_pair_ = is_high_surrogate(unit);
    if (is_pair_) return TextStep::kMore;
  }
  json += token_;
  token_.clear();
  state_ = State::kString;
  return TextStep::kMore;
}

TextStep JsonCopier::step_scalar(char byte, std::string& json) {
  const bool goes_on = state_ == State::kNumber ? std::string_view("0123456789+-.eE").contains(byte)
                                                : byte >= 'a' && byte <= 'z';
  if (goes_on) {
    token_ += byte;
    constexpr std::string_view kLiterals[] = {"true", "false", "null"};
    const auto begins = [&](std::string_view literal) { return literal.starts_with(token_); };
    const bool may_be = state_ == State::kNumber ? token_.size() <= kMaxScalarBytes
                                                 : std::ranges::any_of(kLiterals, begins);
    return may_be ? TextStep::kMore : TextStep::kBad;
  }
  const bool is_whole = state_ == State::kNumber ? is_json_number(token_)
                                                 : token_ == "true" || token_ == "false" || token_ == "null";
  if (!is_whole) return TextStep::kBad;
  json += token_;
  token_.clear();
  state_ = State::kAfter;
  if (open_.empty()) return TextStep::kDoneBefore;
  return is_blank(byte) ? TextStep::kMore : step_after(byte, json);
}

TextStep JsonCopier::step_after(char byte, std::string& json) {
  if (byte != ',') return close(byte, json);
  json += byte;
  state_ = open_.back() == '{' ? State::kKey : State::kValue;
  return TextStep::kMore;
}

TextStep JsonCopier::open(char bracket, std::string& json) {
  if (open_.size() == kMaxNesting) return TextStep::kBad;
  open_.push_back(bracket);
  json += bracket;
  state_ = bracket == '{' ? State::kKeyOrEnd : State::kValueOrEnd;
  return TextStep::kMore;
}

TextStep JsonCopier::close(char bracket, std::string& json) {
  if (bracket != (open_.back() == '{' ? '}' : ']')) return TextStep::kBad;
  open_.pop_back();
  json += bracket;
  return end_value();
}

TextStep JsonCopier::end_value() {
  state_ = State::kAfter;
  return open_.empty() ? TextStep::kDone : TextStep::kMore;
}

bool is_json_number(std::string_view text) {
  const auto skip_digits = [&] {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end > 0;
  };
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.starts_with('0')) {
    text.remove_prefix(1);
  } else if (!skip_digits()) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
    if (!skip_digits()) return false;
  }
  return text.empty();
}

}  // namespace kvasir::server::api
