// Finds out how a chat template writes calls, and how its model thinks.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "kvasir/ids.h"
#include "server/api/tool_calls/tool_call_syntax.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// The syntax whose reader finds two made-up calls in what the template makes of them. A template that shows
// no earlier calls is known by marks in its source. Null when it shows no tools, or calls in an unknown form.
const ToolCallSyntax* detect_tool_call_syntax(const text::ChatTemplate& chat_template,
                                              const text::Tokenizer* tokenizer);

// The marks of the model's reasoning: those that its template names or writes, and those that are one token. None:
// it does not think.
std::vector<ReasoningMarks> detect_reasoning_marks(const text::ChatTemplate& chat_template,
                                                   const text::Tokenizer& tokenizer);

// What a model's answers are read with.
struct ModelSyntax {
  const ToolCallSyntax* syntax = nullptr;
  bool is_generic = false;              // the template shows no calls: the syntax is that of the generic tool form
  std::vector<TokenId> mark_tokens;     // control tokens in its marks, and in those of reasoning
  std::vector<std::string> mark_texts;  // theirs
  std::vector<ReasoningMarks> reasoning_marks;
  std::vector<ReasoningMarks> answer_marks;  // around the answer behind the reasoning
};
ModelSyntax model_syntax(const ToolCallSyntax* syntax, const text::Tokenizer& tokenizer);

// Thread safety: any thread.
class ModelSyntaxes {
 public:
  // Of a template; made at its first use. It lives as long as this.
  const ModelSyntax& of(const text::ChatTemplate& chat_template, const text::Tokenizer& tokenizer);

 private:
  std::mutex mutex_;
  std::map<std::string, ModelSyntax, std::less<>> by_source_;  // guarded
};

}  // namespace kvasir::server::api
