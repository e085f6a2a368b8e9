#include "server/api/tool_calls/tool_call_reading.h"

#include <algorithm>
#include <string>

#include "server/api/tool_calls/reasoning_block.h"

namespace kvasir::server::api {
namespace {

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
  reading.counts = &context.metrics.tool_calls;
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
  const bool may_think = request.thinking.is_enabled != false && request.thinking.effort != "none";
  if (wanted.guide) {
    wanted.guide->reasoning = reasoning_before_answer(reading.reasoning_marks, reading.starts_in_reasoning, may_think);
  }
  if (!wanted.sampling.skip_special_tokens) return reading;
  reading.hidden_marks = model.mark_texts;
  wanted.sampling.shown_special_tokens = model.mark_tokens;
  return reading;
}

}  // namespace kvasir::server::api
