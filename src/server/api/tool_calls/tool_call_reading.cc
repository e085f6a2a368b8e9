#include "server/api/tool_calls/tool_call_reading.h"

#include <algorithm>
#include <string>

namespace kvasir::server::api {
namespace {

constexpr std::size_t kMaxReasoningTokens = 4096;  // that a prompt's end is searched for

bool is_reasoning_token(TokenId token, const text::Tokenizer& tokenizer) {
  const std::string_view text = tokenizer.decode_token(token, true);
  return std::ranges::any_of(reasoning_marks(), [&](const ReasoningMarks& marks) {
    return marks.open.contains(text) || marks.close.contains(text);
  });
}

// Some templates begin the answer with the mark of a call, which the model then goes on with.
std::string mark_at_end(const ToolCallSyntax& syntax, std::span<const TokenId> prompt,
                        const text::Tokenizer& tokenizer) {
  constexpr std::size_t kMostTokens = 16;  // of a mark
  const std::string end = tokenizer.decode(prompt.last(std::min(prompt.size(), kMostTokens)), true);
  for (const std::string_view mark : syntax.open) {
    if (!mark.empty() && end.ends_with(mark)) return std::string(mark);
  }
  return {};
}

// What a guided answer may begin with: the model's reasoning, unless the request wants none.
std::optional<Guide::Reasoning> reasoning_before_answer(const ToolCallReading& reading, const ThinkingWish& wish) {
  if (reading.reasoning_marks.empty()) return std::nullopt;
  const ReasoningMarks& marks = reading.reasoning_marks.front();
  if (reading.starts_in_reasoning) return Guide::Reasoning{.close = std::string(marks.close)};
  if (wish.is_enabled == false || wish.effort == "none") return std::nullopt;
  return Guide::Reasoning{.open = std::string(marks.open), .close = std::string(marks.close)};
}

}  // namespace

const text::ChatTemplate& template_of(const ApiContext& context, const ChatRequest& request) {
  const text::ChatTemplate& chat_template = *context.engine.chat_template();
  return request.tools.is_none() ? chat_template : chat_template.for_tools();
}

bool shows_tools(const ApiContext& context, const ChatRequest& request) {
  return !context.syntaxes->of(template_of(context, request), *context.engine.tokenizer()).is_generic;
}

ToolCallReading tool_call_reading(const ApiContext& context, const ChatRequest& request, Request& wanted) {
  const text::Tokenizer& tokenizer = *context.engine.tokenizer();
  const ModelSyntax& model = context.syntaxes->of(template_of(context, request), tokenizer);
  ToolCallReading reading{.tools = {}, .hidden_marks = {}};
  const bool has_frame = !model.syntax->frame.front().empty();
  if (!request.may_call_tools() && model.reasoning_marks.empty() && !has_frame) return reading;
  reading.syntax = model.syntax;
  if (request.may_call_tools()) {
    reading.tools = tool_signatures(request.tools, request.tool_names);
    reading.prompt_mark = mark_at_end(*reading.syntax, wanted.prompt_token_ids, tokenizer);
  }
  if (!request.parallel_tool_calls) reading.max_calls = 1;
  reading.reasoning_marks = model.reasoning_marks;
  reading.answer_marks = model.answer_marks;
  reading.reasoning_form = request.thinking.form;
  reading.starts_in_reasoning =
      ends_in_reasoning(wanted.prompt_token_ids, tokenizer, request.continue_final_message);
  if (wanted.guide) wanted.guide->reasoning = reasoning_before_answer(reading, request.thinking);
  if (!wanted.sampling.skip_special_tokens) return reading;
  reading.hidden_marks = model.mark_texts;
  wanted.sampling.shown_special_tokens = model.mark_tokens;
  return reading;
}

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

}  // namespace kvasir::server::api
