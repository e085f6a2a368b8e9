// {N: A}: the name is the object's only key.
#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

class KeyedJsonCall final : public CallParser {
 public:
  KeyedJsonCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools)
      : CallParser(syntax, tools) {}

  TextStep step(char byte) override;

 private:
  enum class State : std::uint8_t { kStart, kKey, kName, kColon, kBegin, kArguments, kEnd };

  TextStep expect(char byte, char wanted, State next);

  State state_ = State::kStart;
  std::string name_;
  JsonStringReader string_;
  JsonCopier copier_;
};

TextStep KeyedJsonCall::expect(char byte, char wanted, State next) {
  if (is_call_blank(byte)) return TextStep::kMore;
  state_ = next;
  return byte == wanted ? TextStep::kMore : TextStep::kBad;
}

TextStep KeyedJsonCall::step(char byte) {
  switch (state_) {
    case State::kStart:
      return expect(byte, '{', State::kKey);
    case State::kKey:
      return expect(byte, '"', State::kName);
    case State::kColon:
      return expect(byte, ':', State::kBegin);
    case State::kName: {
      const TextStep step = string_.step(byte, name_);
      if (step == TextStep::kBad || name_.size() > kMaxNameBytes) return TextStep::kBad;
      if (step != TextStep::kDone) return TextStep::kMore;
      state_ = State::kColon;
      return set_tool(name_) ? TextStep::kMore : TextStep::kBad;
    }
    case State::kBegin:
      if (is_call_blank(byte)) return TextStep::kMore;
      if (byte != '{') return TextStep::kBad;
      state_ = State::kArguments;
      has_begun_ = true;
      [[fallthrough]];
    case State::kArguments: {
      const TextStep step = copier_.step(byte, arguments_);
      if (step == TextStep::kDone) state_ = State::kEnd;
      return step == TextStep::kDone ? TextStep::kMore : step;
    }
    case State::kEnd:
      break;
  }
  if (is_call_blank(byte)) return TextStep::kMore;
  return byte == '}' ? TextStep::kDone : TextStep::kBad;
}

}  // namespace

std::unique_ptr<CallParser> make_keyed_json_call(const ToolCallSyntax& syntax,
                                                 std::span<const ToolSignature> tools) {
  return std::make_unique<KeyedJsonCall>(syntax, tools);
}

}  // namespace kvasir::server::api
