#include "server/api/tool_calls/loose_value.h"

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxOpen = 512;
constexpr std::size_t kMaxBareBytes = 4096;

bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

}  // namespace

TextStep LooseValue::step(char byte, std::string& json) {
  if (!std::exchange(has_output_, true)) json += '{';
  switch (state_) {
    case State::kKey:
      return step_key(byte, json);
    case State::kQuote:
      return step_quote(byte, json);
    case State::kString:
      return step_string(byte, json);
    case State::kEscape:
      return step_escape(byte, json);
    case State::kBare:
      return step_bare(byte, json);
    default:
      return is_call_blank(byte) ? TextStep::kMore : step_between(byte, json);
  }
}

TextStep LooseValue::step_between(char byte, std::string& json) {
  switch (state_) {
    case State::kColon:
      if (byte != (open_.back() == '(' ? '=' : ':')) return TextStep::kBad;
      state_ = State::kValueOrEnd;
      return TextStep::kMore;
    case State::kAfter:
      if (byte != ',') return close(byte, json);
      state_ = is_in_list() ? State::kValueOrEnd : State::kKeyOrEnd;
      return TextStep::kMore;
    case State::kValueOrEnd:
      return begin_value(byte, json);
    default:
      break;
  }
  if (byte == '}' || byte == ')') return close(byte, json);
  if (!std::exchange(is_first_, false)) json += ',';
  is_key_ = true;
  if (open_.back() != '(' && (byte == '"' || (byte == '\'' && is_python()) || quote_.starts_with(byte))) {
    return begin_value(byte, json);
  }
  token_.clear();
  state_ = State::kKey;
  return byte == ':' || byte == '=' ? TextStep::kBad : step_key(byte, json);
}

TextStep LooseValue::step_key(char byte, std::string& json) {
  if (byte != (open_.back() == '(' ? '=' : ':')) {
    token_ += byte;
    const bool is_name = is_call_blank(byte) || byte == '_' || byte == '-' || byte == '.' || byte == '$' ||
                         byte == '@' || byte == '/' || (byte >= '0' && byte <= '9') ||
                         (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                         static_cast<unsigned char>(byte) >= 0x80;
    return is_name && token_.size() <= kMaxBareBytes ? TextStep::kMore : TextStep::kBad;
  }
  JsonWriter(json).value(without_blanks(token_));
  json += ':';
  is_key_ = false;
  state_ = State::kValueOrEnd;
  return TextStep::kMore;
}

TextStep LooseValue::begin_value(char byte, std::string& json) {
  if (is_in_list() && !is_key_) {
    if (byte == ']' || byte == ')') return close(byte, json);
    if (!std::exchange(is_first_, false)) json += ',';
  }
  if (!is_key_ && (byte == '{' || byte == '[' || (byte == '(' && is_python()))) {
    if (open_.size() == kMaxOpen) return TextStep::kBad;
    open_.push_back(byte == '(' ? 't' : byte);
    is_first_ = true;
    json += byte == '{' ? '{' : '[';
    state_ = byte == '{' ? State::kKeyOrEnd : State::kValueOrEnd;
    return TextStep::kMore;
  }
  if (byte == '"' || (byte == '\'' && is_python())) {
    end_quote_ = byte;
    return begin_string(json);
  }
  token_ = byte;
  state_ = !quote_.empty() && quote_.front() == byte ? State::kQuote : State::kBare;
  const bool may_be_bare = byte != ',' && byte != '}' && byte != ']' && byte != ')';
  return may_be_bare ? TextStep::kMore : TextStep::kBad;
}

TextStep LooseValue::step_quote(char byte, std::string& json) {
  token_ += byte;
  if (!quote_.starts_with(token_)) return TextStep::kBad;
  if (token_.size() < quote_.size()) return TextStep::kMore;
  end_quote_ = quote_;
  return begin_string(json);
}

TextStep LooseValue::begin_string(std::string& json) {
  token_.clear();
  json += '"';
  state_ = State::kString;
  return TextStep::kMore;
}

TextStep LooseValue::step_string(char byte, std::string& json) {
  if (end_quote_.size() == 1) {
    if (byte == '\\') {
      token_ = byte;
      state_ = State::kEscape;
    } else if (byte == end_quote_.front()) {
      end_string(json);
    } else {
      append_json_byte(byte, json);
    }
    return TextStep::kMore;
  }
  token_ += byte;
  if (token_.ends_with(end_quote_)) {
    end_string(json);
    return TextStep::kMore;
  }
  const std::size_t num_ready = token_.size() - partial_mark(token_, end_quote_);
  for (const char c : std::string_view(token_).substr(0, num_ready)) append_json_byte(c, json);
  token_.erase(0, num_ready);
  return TextStep::kMore;
}

void LooseValue::end_string(std::string& json) {
  json += '"';
  state_ = State::kAfter;
  if (!std::exchange(is_key_, false)) return;
  json += ':';
  state_ = State::kColon;
}

TextStep LooseValue::step_escape(char byte, std::string& json) {
  token_ += byte;
  const char kind = token_[1];
  const std::size_t num_bytes = kind == 'u' ? 6 : kind == 'x' ? 4 : 2;
  if (token_.size() > 2 && !is_hex(byte)) return TextStep::kBad;
  if (token_.size() < num_bytes) return TextStep::kMore;
  state_ = State::kString;
  if (kind == 'x') {
    json += "\\u00" + token_.substr(2);
  } else if (kind == '\'') {
    json += '\'';
  } else if (std::string_view("\"\\/bfnrtu").contains(kind)) {
    json += token_;
  } else {  // no escape: both stand for themselves, as in Python
    append_json_byte('\\', json);
    append_json_byte(kind, json);
  }
  token_.clear();
  return TextStep::kMore;
}

TextStep LooseValue::step_bare(char byte, std::string& json) {
  if (!std::string_view(",}])").contains(byte)) {
    token_ += byte;
    return token_.size() <= kMaxBareBytes ? TextStep::kMore : TextStep::kBad;
  }
  const std::string_view bare = without_blanks(token_);
  constexpr std::pair<std::string_view, std::string_view> kLiterals[] = {
      {"true", "true"},   {"True", "true"}, {"false", "false"},
      {"False", "false"}, {"null", "null"}, {"None", "null"}};
  const auto literal = std::ranges::find(kLiterals, bare, [](const auto& pair) { return pair.first; });
  if (literal != std::end(kLiterals)) {
    json += literal->second;
  } else if (is_json_number(bare)) {
    json += bare;
  } else if (is_python()) {
    return TextStep::kBad;
  } else {
    JsonWriter(json).value(bare);
  }
  state_ = State::kAfter;
  return step_between(byte, json);
}

TextStep LooseValue::close(char bracket, std::string& json) {
  const char opened = open_.back();
  const char wanted = opened == '{' ? '}' : opened == '[' ? ']' : ')';
  if (bracket != wanted) return TextStep::kBad;
  open_.pop_back();
  json += opened == '{' || opened == '(' ? '}' : ']';
  is_first_ = false;
  state_ = State::kAfter;
  return open_.empty() ? TextStep::kDone : TextStep::kMore;
}

}  // namespace kvasir::server::api
