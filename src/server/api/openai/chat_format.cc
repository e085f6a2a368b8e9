#include "server/api/openai/chat_format.h"

#include <utility>

#include "server/api/openai/logprobs_json.h"

namespace kvasir::server::api {
namespace {

constexpr std::string_view kChunk = "chat.completion.chunk";

std::string_view chat_finish_reason(FinishReason reason, std::int32_t num_calls) {
  return num_calls > 0 && reason == FinishReason::kStop ? "tool_calls" : finish_reason_name(reason);
}

}  // namespace

ChatFormat::ChatFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      ids_(ids),
      has_begun_(static_cast<std::size_t>(options_.num_choices)),
      readers_(static_cast<std::size_t>(options_.num_choices), reader()) {}

ToolCallReader ChatFormat::reader() const {
  if (!options_.parallel_tool_calls) return {options_.tool_calls, options_.tool_names, 1};
  return {options_.tool_calls, options_.tool_names};
}

// Beside calls an empty content is null.
void ChatFormat::write_message(JsonWriter& json, const std::string& text, std::int32_t& num_calls) const {
  ToolCallReader reader = this->reader();
  const ToolCallReader::Piece message = reader.read_whole(text);
  num_calls = reader.num_calls();
  json.begin_object().member("role", "assistant");
  if (message.text.empty() && num_calls > 0) {
    json.member_null("content");
  } else {
    json.member("content", message.text);
  }
  json.member_null("refusal");
  if (num_calls > 0) {
    json.key("tool_calls").begin_array();
    for (const ToolCall& call : message.calls) {
      json.begin_object().member("id", ids_.next("call_")).member("type", "function");
      json.key("function")
          .begin_object()
          .member("name", call.name)
          .member("arguments", call.arguments)
          .end_object();
      json.end_object();
    }
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
    std::int32_t num_calls = 0;
    json.key("message");
    write_message(json, choice.text, num_calls);
    if (options_.logprobs) {
      json.key("logprobs");
      write_chat_logprobs(json, choice.logprobs, tokenizer_);
    } else {
      json.member_null("logprobs");
    }
    json.member("finish_reason", chat_finish_reason(choice.finish_reason, num_calls)).end_object();
  }
  json.end_array();
  if (options_.prompt_logprobs) {
    json.key("prompt_logprobs");
    write_prompt_logprobs(json, choices.front().prompt_logprobs, &tokenizer_);
  }
  json.key("usage");
  write_usage(json, usage);
  json.end_object();
  return body;
}

void ChatFormat::append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                               http::Events& events) {
  if (!has_begun_[static_cast<std::size_t>(choice)]) {
    has_begun_[static_cast<std::size_t>(choice)] = true;
    const std::string nothing;
    append_chunk({.choice = choice, .has_role = true, .content = &nothing}, usage, events);
  }
  ToolCallReader& reader = readers_[static_cast<std::size_t>(choice)];
  ToolCallReader::Piece piece = reader.push(output.text);
  const bool has_logprobs = options_.logprobs && !output.logprobs.empty();
  if (!piece.text.empty() || has_logprobs) {
    append_chunk({.choice = choice, .content = &piece.text, .logprobs = output.logprobs}, usage, events);
  }
  append_calls(choice, piece.calls, usage, events);
  if (!output.finish_reason) return;
  piece = reader.finish();
  if (!piece.text.empty()) append_chunk({.choice = choice, .content = &piece.text}, usage, events);
  append_calls(choice, piece.calls, usage, events);
  append_chunk(
      {.choice = choice, .finish_reason = chat_finish_reason(*output.finish_reason, reader.num_calls())},
      usage, events);
}

// The reader has counted them already.
void ChatFormat::append_calls(std::int32_t choice, std::span<const ToolCall> calls, const Usage& usage,
                              http::Events& events) {
  std::int32_t index =
      readers_[static_cast<std::size_t>(choice)].num_calls() - static_cast<std::int32_t>(calls.size());
  for (const ToolCall& call : calls) {
    append_chunk({.choice = choice, .call = &call, .call_index = index++}, usage, events);
  }
}

void ChatFormat::write_call_delta(JsonWriter& json, const Delta& delta) const {
  json.key("tool_calls").begin_array().begin_object();
  json.member("index", delta.call_index).member("id", ids_.next("call_")).member("type", "function");
  json.key("function")
      .begin_object()
      .member("name", delta.call->name)
      .member("arguments", delta.call->arguments);
  json.end_object().end_object().end_array();
}

void ChatFormat::append_chunk(const Delta& delta, const Usage& usage, http::Events& events) const {
  std::string chunk;
  JsonWriter json(chunk);
  begin_answer(json, options_.header, kChunk).key("choices").begin_array().begin_object();
  json.member("index", delta.choice).key("delta").begin_object();
  if (delta.has_role) json.member("role", "assistant");
  if (delta.content != nullptr) json.member("content", *delta.content);
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
  end_chunk(json, options_.header, usage);
  events.push_back({.data = std::move(chunk)});
}

void ChatFormat::append_last_events(const Usage& usage, http::Events& events) {
  if (options_.header.include_usage) events.push_back({.data = usage_chunk(options_.header, kChunk, usage)});
}

}  // namespace kvasir::server::api
