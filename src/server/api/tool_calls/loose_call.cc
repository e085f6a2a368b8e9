// call:N{key:value, ..} and N(key=value, ..).
#include "server/api/tool_calls/call_parser.h"
#include "server/api/tool_calls/loose_value.h"

namespace kvasir::server::api {
namespace {

class LooseCall final : public CallParser {
 public:
  LooseCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools)
      : CallParser(syntax, tools),
        prefix_(syntax.layout == ToolCallLayout::kDict ? "call:" : ""),
        bracket_(syntax.layout == ToolCallLayout::kDict ? '{' : '('),
        value_(bracket_, syntax.quote) {}

  TextStep step(char byte) override;

 private:
  const std::string_view prefix_;
  const char bracket_;
  std::string head_;
  LooseValue value_;
};

TextStep LooseCall::step(char byte) {
  if (tool_ != nullptr) {
    const TextStep step = value_.step(byte, arguments_);
    has_begun_ = has_begun_ || !is_call_blank(byte);
    return step;
  }
  if (byte != bracket_) {
    head_ += byte;
    const std::string_view head = without_blanks(head_);
    const bool may_be = prefix_.empty() ? std::string_view("{[\"'<").find(byte) == std::string_view::npos
                                        : head.starts_with(prefix_) || prefix_.starts_with(head);
    return may_be && head_.size() <= kMaxNameBytes ? TextStep::kMore : TextStep::kBad;
  }
  std::string_view name = without_blanks(head_);
  if (!name.starts_with(prefix_)) return TextStep::kBad;
  name.remove_prefix(prefix_.size());
  return set_tool(without_blanks(name)) ? TextStep::kMore : TextStep::kBad;
}

}  // namespace

std::unique_ptr<CallParser> make_loose_call(const ToolCallSyntax& syntax,
                                            std::span<const ToolSignature> tools) {
  return std::make_unique<LooseCall>(syntax, tools);
}

}  // namespace kvasir::server::api
