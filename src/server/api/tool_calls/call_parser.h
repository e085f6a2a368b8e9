// One call, read as it comes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "server/api/tool_calls/json_text.h"
#include "server/api/tool_calls/tool_call_syntax.h"
#include "server/api/tool_calls/tool_signature.h"

namespace kvasir::server::api {

// Begins behind the call's mark and blanks, and ends before the mark that closes it.
//
// Thread safety: none. Invariant: arguments() is a beginning of the same text however the bytes are cut.
class CallParser {
 public:
  virtual ~CallParser() = default;

  // kBad: it is no call, or breaks off after it had begun.
  virtual TextStep step(char byte) = 0;
  // No byte comes any more: whether the call is whole even so.
  virtual bool finish() { return false; }

  // Whether it is sure to be a call: the tool exists and its arguments have begun.
  bool has_begun() const { return has_begun_; }
  // Requires: has_begun().
  const std::string& name() const { return tool_->name; }
  // JSON, as far as it is known; whoever takes it may clear it.
  std::string& arguments() { return arguments_; }

 protected:
  CallParser(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools)
      : syntax_(syntax), tools_(tools) {}
  bool set_tool(std::string_view name) {
    tool_ = find_tool(tools_, name);
    return tool_ != nullptr;
  }

  static constexpr std::size_t kMaxNameBytes = 512;  // with the marks around it

  const ToolCallSyntax& syntax_;
  const std::span<const ToolSignature> tools_;
  const ToolSignature* tool_ = nullptr;
  bool has_begun_ = false;
  std::string arguments_;
};

// is_bare: no mark came before it, so that an object without arguments needs to be all that there is.
// Borrows both.
std::unique_ptr<CallParser> make_call_parser(const ToolCallSyntax& syntax,
                                             std::span<const ToolSignature> tools, bool is_bare);

// One a layout.
std::unique_ptr<CallParser> make_json_call(const ToolCallSyntax& syntax, std::span<const ToolSignature> tools,
                                           bool is_bare);
std::unique_ptr<CallParser> make_named_json_call(const ToolCallSyntax& syntax,
                                                 std::span<const ToolSignature> tools);
std::unique_ptr<CallParser> make_keyed_json_call(const ToolCallSyntax& syntax,
                                                 std::span<const ToolSignature> tools);
std::unique_ptr<CallParser> make_tagged_call(const ToolCallSyntax& syntax,
                                             std::span<const ToolSignature> tools);
std::unique_ptr<CallParser> make_nested_call(const ToolCallSyntax& syntax,
                                             std::span<const ToolSignature> tools);
std::unique_ptr<CallParser> make_loose_call(const ToolCallSyntax& syntax,
                                            std::span<const ToolSignature> tools);

constexpr bool is_call_blank(char byte) {
  return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}
constexpr std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_call_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_call_blank(text.back())) text.remove_suffix(1);
  return text;
}
// How much of the text's end may be the beginning of `mark`, but not all of it.
std::size_t partial_mark(std::string_view text, std::string_view mark);

}  // namespace kvasir::server::api
