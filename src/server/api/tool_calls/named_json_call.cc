// A name, perhaps a mark, and the arguments as JSON.
#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

class NamedJsonCall final : public CallParser {
 public:
  NamedJsonCall(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools)
      : CallParser(syntax, tools) {}

  TextStep step(char byte) override;

 private:
  bool read_head();

  std::string head_;  // up to the arguments
  JsonCopier copier_;
};

TextStep NamedJsonCall::step(char byte) {
  if (has_begun_) return copier_.step(byte, arguments_);
  if (byte == '{') {
    if (!read_head()) return TextStep::kBad;
    has_begun_ = true;
    return copier_.step(byte, arguments_);
  }
  head_ += byte;
  return head_.size() > kMaxNameBytes ? TextStep::kBad : TextStep::kMore;
}

bool NamedJsonCall::read_head() {
  std::string_view head = without_blanks(head_);
  const std::size_t name_mark = syntax_.name_mark.empty() ? std::string_view::npos
                                                          : head.find(syntax_.name_mark);
  if (name_mark != std::string_view::npos) head.remove_prefix(name_mark + syntax_.name_mark.size());
  if (head.starts_with(syntax_.before_name)) head.remove_prefix(syntax_.before_name.size());
  if (!head.ends_with(syntax_.arguments_mark)) {
    if (!syntax_.may_lack_arguments_mark) return false;
  } else {
    head.remove_suffix(syntax_.arguments_mark.size());
  }
  if (!syntax_.call_id_mark.empty()) head = head.substr(0, head.find(syntax_.call_id_mark));
  if (!syntax_.name_end.empty()) head = head.substr(0, head.find_first_of(syntax_.name_end));
  return set_tool(without_blanks(head));
}

}  // namespace

std::unique_ptr<CallParser> make_named_json_call(const ToolCallSyntax& syntax,
                                                 std::span<const ToolSignature> tools) {
  return std::make_unique<NamedJsonCall>(syntax, tools);
}

}  // namespace kvasir::server::api
