// The block of reasoning that may stand before an answer.
#pragma once

#include <optional>
#include <span>

#include "kvasir/guide.h"
#include "kvasir/ids.h"
#include "server/api/tool_calls/tool_call_syntax.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// Whether the prompt ends inside a block of reasoning, which the answer therefore goes on with. With `is_continued`
// the prompt ends with the beginning of an answer, so there may be thoughts behind the mark.
bool ends_in_reasoning(std::span<const TokenId> prompt, const text::Tokenizer& tokenizer, bool is_continued);

// Reasoning before a guided answer. `marks`: of the model, which does not think without any. A block that the prompt
// has opened has to be closed; another may be opened where `may_think` says so.
std::optional<Guide::Reasoning> reasoning_before_answer(std::span<const ReasoningMarks> marks, bool starts_in_reasoning,
                                                        bool may_think);

}  // namespace kvasir::server::api
