#include "server/api/tool_calls/reasoning_block.h"

#include <algorithm>
#include <string>

#include "server/api/tool_calls/call_parser.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxReasoningTokens = 4096;  // that a prompt's end is searched for

bool is_reasoning_token(TokenId token, const text::Tokenizer& tokenizer) {
  const std::string_view text = tokenizer.decode_token(token, true);
  return std::ranges::any_of(reasoning_marks(), [&](const ReasoningMarks& marks) {
    return marks.open.contains(text) || marks.close.contains(text);
  });
}

}  // namespace

// Looked for behind the last control token that is not a mark of reasoning: there the turn begins. A template
// may end with such a token; then the block is open only if the mark comes just before it. Behind the mark may stand
// blanks, or an answer that has begun: any other text is somebody's who wrote about the mark.
bool ends_in_reasoning(std::span<const TokenId> prompt, const text::Tokenizer& tokenizer, bool is_continued) {
  const auto is_border = [&](TokenId token) {
    return tokenizer.vocab().is_hidden(token) && !is_reasoning_token(token, tokenizer);
  };
  const bool has_last_border = !prompt.empty() && is_border(prompt.back());
  if (has_last_border) prompt = prompt.first(prompt.size() - 1);
  std::size_t begin = prompt.size();
  while (begin > 0 && prompt.size() - begin < kMaxReasoningTokens && !is_border(prompt[begin - 1])) --begin;
  const std::string text = tokenizer.decode(prompt.subspan(begin), true);
  return std::ranges::any_of(reasoning_marks(), [&](const ReasoningMarks& marks) {
    if (has_last_border || !is_continued) return without_blanks(text).ends_with(marks.open);
    const std::size_t open = text.rfind(marks.open), close = text.rfind(marks.close);
    return open != std::string::npos && (close == std::string::npos || close < open);
  });
}

std::optional<Guide::Reasoning> reasoning_before_answer(std::span<const ReasoningMarks> marks, bool starts_in_reasoning,
                                                        bool may_think) {
  if (marks.empty()) return std::nullopt;
  const ReasoningMarks& first = marks.front();
  if (starts_in_reasoning) return Guide::Reasoning{.close = std::string(first.close)};
  if (!may_think) return std::nullopt;
  return Guide::Reasoning{.open = std::string(first.open), .close = std::string(first.close)};
}

}  // namespace kvasir::server::api
