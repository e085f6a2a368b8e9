#include "server/api/openai/chat_format.h"

#include <utility>

#include "server/api/openai/logprobs_json.h"
#include "server/api/timings_json.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kChunk = "chat.completion.chunk";

std::string_view chat_finish_reason(FinishReason reason, bool ends_with_calls) {
  return ends_with_calls && reason == FinishReason::kStop ? "tool_calls" : finish_reason_name(reason);
}

}  // namespace

ChatFormat::ChatFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids)
    : options_(std::move(options)), tokenizer_(tokenizer), ids_(ids) {
  for (std::int32_t i = 0; i < options_.num_choices; ++i) {
    streams_.push_back({.reader = ToolCallReader(options_.tool_calls, options_.tool_calls.counts),
                        .reasoning_tokens = ReasoningTokens(options_.tool_calls, tokenizer)});
  }
}

bool ChatFormat::is_custom(std::string_view shown_name) const {
  const ToolOrigin* const origin = find_origin(options_.tool_origins, shown_name);
  return origin != nullptr && origin->is_custom;
}

void ChatFormat::write_call(JsonWriter& json, const ToolCall& call) const {
  const bool custom = is_custom(call.name);
  json.begin_object().member("id", ids_.next("call_")).member("type", custom ? "custom" : "function");
  json.key(custom ? "custom" : "function").begin_object().member("name", call.name);
  if (custom) {
    json.member("input", custom_input_of(call.arguments));
  } else {
    json.member("arguments", call.arguments);
  }
  json.end_object().end_object();
}

std::int32_t ChatFormat::num_reasoning_tokens() const {
  std::int32_t count = 0;
  for (const Stream& stream : streams_) count += stream.reasoning_tokens.count();
  return count;
}

// Beside calls an empty content is null.
void ChatFormat::write_message(JsonWriter& json, const ReadAnswer& message) const {
  json.begin_object().member("role", "assistant");
  if (message.text.empty() && !message.calls.empty()) {
    json.member_null("content");
  } else {
    json.member("content", message.text);
  }
  if (!message.reasoning.empty()) json.member("reasoning_content", message.reasoning);
  json.member_null("refusal");
  if (!message.calls.empty()) {
    json.key("tool_calls").begin_array();
    for (const ToolCall& call : message.calls) write_call(json, call);
    json.end_array();
  }
  json.end_object();
}

std::string ChatFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  std::string body;
  JsonWriter json(body);
  begin_answer(json, options_.header, "chat.completion").key("choices").begin_array();
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceResult& choice = choices[i];
    json.begin_object().member("index", i);
    const ReadAnswer message = read_answer(options_.tool_calls, choice.text);
    streams_[i].reasoning_tokens.add(choice.token_ids);
    json.key("message");
    write_message(json, message);
    if (options_.logprobs) {
      json.key("logprobs");
      write_chat_logprobs(json, choice.logprobs, tokenizer_);
    } else {
      json.member_null("logprobs");
    }
    json.member("finish_reason", chat_finish_reason(choice.finish_reason, message.ends_with_calls))
        .end_object();
  }
  json.end_array();
  if (options_.prompt_logprobs) {
    json.key("prompt_logprobs");
    write_prompt_logprobs(json, choices.front().prompt_logprobs, &tokenizer_);
  }
  json.key("usage");
  write_usage(json, usage, num_reasoning_tokens());
  write_search(json, search_ended_by_);
  if (options_.timings) {
    json.key("timings");
    write_timings(json, usage, choices.back().cost);
  }
  json.end_object();
  return body;
}

void ChatFormat::append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                               http::Events& events) {
  Stream& stream = streams_[static_cast<std::size_t>(choice)];
  cost_ = output.cost;
  if (!std::exchange(stream.has_begun, true)) {
    const std::string nothing;
    append_chunk({.choice = choice, .has_role = true, .content = &nothing}, usage, events);
  }
  ToolCallReader::Parts parts;
  stream.reader.push(output.text, parts);
  stream.reasoning_tokens.add(output.token_ids);
  // The tokens' log probabilities go with the first of what they gave, even if that is nothing yet.
  const bool has_logprobs = options_.logprobs && !output.logprobs.empty();
  const auto is_text = [](const AnswerPart& part) {
    return part.kind == AnswerPart::Kind::kText || part.kind == AnswerPart::Kind::kReasoning;
  };
  if (has_logprobs && (parts.empty() || !is_text(parts.front()))) parts.insert(parts.begin(), AnswerPart{});
  bool is_first = has_logprobs;
  for (const AnswerPart& part : parts) {
    if (std::exchange(is_first, false)) {
      const bool is_reasoning = part.kind == AnswerPart::Kind::kReasoning;
      append_chunk({.choice = choice,
                    .content = is_reasoning ? nullptr : &part.text,
                    .reasoning = is_reasoning ? &part.text : nullptr,
                    .logprobs = output.logprobs},
                   usage, events);
    } else {
      append_part(choice, part, usage, events);
    }
  }
  if (!output.finish_reason) return;
  parts.clear();
  stream.reader.finish(parts);
  for (const AnswerPart& part : parts) append_part(choice, part, usage, events);
  const bool ends_with_calls = stream.reader.ends_with_calls();
  append_chunk(
      {.choice = choice, .finish_reason = chat_finish_reason(*output.finish_reason, ends_with_calls)}, usage,
      events);
}

void ChatFormat::append_part(std::int32_t choice, const AnswerPart& part, const Usage& usage,
                             http::Events& events) {
  Stream& stream = streams_[static_cast<std::size_t>(choice)];
  switch (part.kind) {
    case AnswerPart::Kind::kText:
      return append_chunk({.choice = choice, .content = &part.text}, usage, events);
    case AnswerPart::Kind::kReasoning:
      return append_chunk({.choice = choice, .reasoning = &part.text}, usage, events);
    case AnswerPart::Kind::kCall:
      ++stream.num_calls;
      stream.is_custom = is_custom(part.text);
      stream.arguments.clear();
      break;
    case AnswerPart::Kind::kArguments:
      if (!stream.is_custom) break;
      stream.arguments += part.text;  // the text is known when the arguments around it are whole
      return;
    case AnswerPart::Kind::kCallEnd: {
      if (!stream.is_custom) return;
      const AnswerPart input{.kind = AnswerPart::Kind::kArguments, .text = custom_input_of(stream.arguments)};
      return append_chunk(
          {.choice = choice, .call = &input, .call_index = stream.num_calls - 1, .is_custom = true}, usage, events);
    }
  }
  append_chunk({.choice = choice,
                .call = &part,
                .call_index = stream.num_calls - 1,
                .is_custom = stream.is_custom},
               usage, events);
}

void ChatFormat::write_call_delta(JsonWriter& json, const Delta& delta) const {
  const bool is_begin = delta.call->kind == AnswerPart::Kind::kCall;
  json.key("tool_calls").begin_array().begin_object().member("index", delta.call_index);
  const std::string_view type = delta.is_custom ? "custom" : "function";
  if (is_begin) json.member("id", ids_.next("call_")).member("type", type);
  json.key(type).begin_object();
  if (is_begin) json.member("name", delta.call->text);
  json.member(delta.is_custom ? "input" : "arguments",
              is_begin ? std::string_view() : std::string_view(delta.call->text));
  json.end_object().end_object().end_array();
}

void ChatFormat::append_chunk(const Delta& delta, const Usage& usage, http::Events& events) const {
  std::string chunk;
  JsonWriter json(chunk);
  begin_answer(json, options_.header, kChunk).key("choices").begin_array().begin_object();
  json.member("index", delta.choice).key("delta").begin_object();
  if (delta.has_role) json.member("role", "assistant");
  if (delta.content != nullptr) json.member("content", *delta.content);
  if (delta.reasoning != nullptr) json.member("reasoning_content", *delta.reasoning);
  if (delta.call != nullptr) write_call_delta(json, delta);
  json.end_object();
  if (options_.logprobs && !delta.logprobs.empty()) {
    json.key("logprobs");
    write_chat_logprobs(json, delta.logprobs, tokenizer_);
  } else {
    json.member_null("logprobs");
  }
  if (delta.finish_reason) {
    json.member("finish_reason", *delta.finish_reason);
  } else {
    json.member_null("finish_reason");
  }
  json.end_object().end_array();
  if (options_.timings) {
    json.key("timings");
    write_timings(json, usage, cost_);
  }
  end_chunk(json, options_.header, usage, num_reasoning_tokens());
  events.push_back({.data = std::move(chunk)});
}

void ChatFormat::append_last_events(const Usage& usage, http::Events& events) {
  if (options_.header.include_usage) {
    events.push_back({.data = usage_chunk(options_.header, kChunk, usage, num_reasoning_tokens())});
  }
}

}  // namespace kvasir::server::api
