// {"name": N, "arguments": A}, with its members in any order and others beside them.
#include <array>
#include <utility>

#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

class JsonCall final : public CallParser {
 public:
  JsonCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools, bool is_bare)
      : CallParser(syntax, tools), is_bare_(is_bare) {}

  TextStep step(char byte) override;
  bool finish() override;

 private:
  enum class State : std::uint8_t {
    kStart,
    kKeyOrEnd,
    kKey,
    kColon,
    kValue,
    kName,
    kArguments,
    kArgumentText,  // some write the object as a string
    kOther,
    kAfter,
    kEndOfBare,
  };

  TextStep step_between(char byte);
  TextStep begin_value(char byte);
  TextStep begin_arguments(char byte);
  TextStep step_argument_text(char byte);
  TextStep step_other(char byte);
  TextStep end_object();
  void begin_if_known();
  bool is_name_key() const { return key_ == syntax_.name_key || key_ == "name"; }
  bool is_arguments_key() const {
    return key_ == syntax_.arguments_key || key_ == "arguments" || key_ == "parameters";
  }

  const bool is_bare_;
  State state_ = State::kStart;
  bool is_wrapped_ = false;  // {"type": "function", "function": {..}}
  bool is_inside_ = false;   // the inner object
  bool has_arguments_ = false;
  bool is_text_whole_ = false;  // of kArgumentText
  std::string key_, name_, ignored_;
  JsonStringReader string_;
  JsonCopier copier_;
};

TextStep JsonCall::step(char byte) {
  switch (state_) {
    case State::kKey:
    case State::kName: {
      const TextStep step = string_.step(byte, state_ == State::kKey ? key_ : name_);
      if (step == TextStep::kBad) return step;
      if (name_.size() > kMaxNameBytes || key_.size() > kMaxNameBytes) return TextStep::kBad;
      if (step != TextStep::kDone) return TextStep::kMore;
      if (state_ == State::kName && !set_tool(name_)) return TextStep::kBad;
      state_ = state_ == State::kKey ? State::kColon : State::kAfter;
      begin_if_known();
      return TextStep::kMore;
    }
    case State::kArguments: {
      const TextStep step = copier_.step(byte, arguments_);
      if (step == TextStep::kDone) state_ = State::kAfter;
      return step == TextStep::kDone ? TextStep::kMore : step;
    }
    case State::kArgumentText:
      return step_argument_text(byte);
    case State::kOther:
      return step_other(byte);
    case State::kEndOfBare:
      if (is_call_blank(byte)) return TextStep::kMore;
      if (!std::string_view(",;]{").contains(byte)) return TextStep::kBad;
      has_begun_ = true;
      return TextStep::kDoneBefore;
    default:
      return is_call_blank(byte) ? TextStep::kMore : step_between(byte);
  }
}

bool JsonCall::finish() {
  if (state_ != State::kEndOfBare) return false;
  has_begun_ = true;
  return true;
}

TextStep JsonCall::step_between(char byte) {
  const auto expect = [&](char wanted, State next) {
    state_ = next;
    return byte == wanted ? TextStep::kMore : TextStep::kBad;
  };
  switch (state_) {
    case State::kStart:
      return expect('{', State::kKeyOrEnd);
    case State::kColon:
      return expect(':', State::kValue);
    case State::kValue:
      return begin_value(byte);
    case State::kAfter:
      if (byte == '}') return end_object();
      // Small models close too little.
      if (has_begun_ && !is_bare_ && syntax_.close.starts_with(byte)) return TextStep::kDoneBefore;
      return expect(',', State::kKeyOrEnd);
    default:
      if (byte == '}') return end_object();
      key_.clear();
      string_ = {};
      return expect('"', State::kKey);
  }
}

TextStep JsonCall::begin_value(char byte) {
  copier_ = {};
  string_ = {};
  if (is_name_key() && byte == '"' && name_.empty()) {
    state_ = State::kName;
    return TextStep::kMore;
  }
  if (is_arguments_key() && !has_arguments_) return begin_arguments(byte);
  if (key_ == "function" && !is_wrapped_ && name_.empty()) {
    if (byte == '{') {
      is_wrapped_ = is_inside_ = true;
      state_ = State::kKeyOrEnd;
      return TextStep::kMore;
    }
  }
  ignored_.clear();
  state_ = State::kOther;
  return step_other(byte);
}

TextStep JsonCall::begin_arguments(char byte) {
  if (byte == '"') {
    state_ = State::kArgumentText;
    return TextStep::kMore;
  }
  if (byte == '{') {
    state_ = State::kArguments;
    has_arguments_ = true;
    begin_if_known();
    return copier_.step(byte, arguments_);
  }
  if (byte != 'n') return TextStep::kBad;
  ignored_.clear();
  state_ = State::kOther;  // null
  return step_other(byte);
}

// Its text is copied as it stands; the copier looks whether it is an object.
TextStep JsonCall::step_argument_text(char byte) {
  const std::size_t size = arguments_.size();
  const TextStep step = string_.step(byte, arguments_);
  if (step == TextStep::kBad) return step;
  if (step == TextStep::kDone) {
    state_ = State::kAfter;
    return has_arguments_ == is_text_whole_ ? TextStep::kMore : TextStep::kBad;
  }
  for (const char c : std::string_view(arguments_).substr(size)) {
    if (has_arguments_ == is_text_whole_ && is_call_blank(c)) continue;
    if (is_text_whole_ || (!has_arguments_ && c != '{')) return TextStep::kBad;
    has_arguments_ = true;
    const TextStep copied = copier_.step(c, ignored_);
    if (copied == TextStep::kBad) return copied;
    is_text_whole_ = copied == TextStep::kDone;
  }
  ignored_.clear();
  begin_if_known();
  return TextStep::kMore;
}

TextStep JsonCall::step_other(char byte) {
  const TextStep step = copier_.step(byte, ignored_);
  ignored_.clear();
  if (step == TextStep::kDone || step == TextStep::kDoneBefore) state_ = State::kAfter;
  if (step != TextStep::kDoneBefore) return step == TextStep::kDone ? TextStep::kMore : step;
  return is_call_blank(byte) ? TextStep::kMore : step_between(byte);
}

TextStep JsonCall::end_object() {
  if (std::exchange(is_inside_, false)) {
    state_ = State::kAfter;
    return TextStep::kMore;
  }
  if (tool_ == nullptr) return TextStep::kBad;
  if (has_arguments_) return TextStep::kDone;
  arguments_ = "{}";
  if (is_bare_) {
    state_ = State::kEndOfBare;
    return TextStep::kMore;
  }
  has_begun_ = true;
  return TextStep::kDone;
}

void JsonCall::begin_if_known() { has_begun_ = has_begun_ || (has_arguments_ && tool_ != nullptr); }

}  // namespace

std::unique_ptr<CallParser> make_json_call(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools,
                                           bool is_bare) {
  return std::make_unique<JsonCall>(syntax, tools, is_bare);
}

}  // namespace kvasir::server::api
