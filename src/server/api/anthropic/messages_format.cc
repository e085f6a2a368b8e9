#include "server/api/anthropic/messages_format.h"

#include <utility>

#include "server/observe/kv_usage_json.h"

namespace kvasir::server::api {
namespace {

// Cached tokens are not counted among the others.
void write_usage(JsonWriter& json, const Usage& usage) {
  json.key("usage")
      .begin_object()
      .member("input_tokens", usage.prompt_tokens - usage.cached_tokens)
      .member("cache_creation_input_tokens", 0)
      .member("cache_read_input_tokens", usage.cached_tokens)
      .member("output_tokens", usage.completion_tokens);
  observe::member_kv_usage(json, usage.kv);
  json.end_object();
}

void write_stop(JsonWriter& json, FinishReason reason, const std::string& stop_string, bool ends_with_calls) {
  std::string_view name = "end_turn";
  if (reason == FinishReason::kLength)
    name = "max_tokens";
  else if (!stop_string.empty())
    name = "stop_sequence";
  else if (ends_with_calls)
    name = "tool_use";
  json.member("stop_reason", name).key("stop_sequence");
  if (reason == FinishReason::kStop && !stop_string.empty()) {
    json.value(stop_string);
  } else {
    json.null();
  }
}

void append_event(http::Events& events, std::string_view type, std::string data) {
  events.push_back({.data = std::move(data), .name = std::string(type)});
}

// {"type", "index", ...
JsonWriter& begin_block_event(JsonWriter& json, std::string_view type, std::int32_t index) {
  return json.begin_object().member("type", type).member("index", index);
}

}  // namespace

MessagesFormat::MessagesFormat(Options options, IdSource& ids)
    : options_(std::move(options)), ids_(ids), reader_(options_.tool_calls, options_.tool_calls.counts) {}

void MessagesFormat::begin_message(JsonWriter& json) const {
  json.begin_object()
      .member("id", options_.id)
      .member("type", "message")
      .member("role", "assistant")
      .member("model", options_.model);
}

std::string MessagesFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const ChoiceResult& choice = choices.front();
  const ReadAnswer message = read_answer(options_.tool_calls, choice.text);
  std::string body;
  JsonWriter json(body);
  begin_message(json);
  json.key("content").begin_array();
  if (!message.reasoning.empty()) {
    json.begin_object().member("type", "thinking").member("thinking", message.reasoning);
    json.member("signature", "").end_object();
  }
  if (!message.text.empty())
    json.begin_object().member("type", "text").member("text", message.text).end_object();
  for (const ToolCall& call : message.calls) {
    json.begin_object()
        .member("type", "tool_use")
        .member("id", ids_.next("toolu_"))
        .member("name", call.name);
    // The input is an object, which the arguments of a call that was cut are not.
    json.key("input").raw(call.is_complete ? std::string_view(call.arguments) : "{}").end_object();
  }
  json.end_array();
  write_stop(json, choice.finish_reason, choice.stop_string, message.ends_with_calls);
  write_usage(json, usage);
  json.end_object();
  return body;
}

void MessagesFormat::append_start(const Usage& usage, http::Events& events) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().member("type", "message_start").key("message");
  begin_message(json);
  json.key("content").begin_array().end_array().member_null("stop_reason").member_null("stop_sequence");
  write_usage(json, usage);
  json.end_object().end_object();
  append_event(events, "message_start", std::move(data));
}

// A thought has no signature: nothing would check it.
void MessagesFormat::append_text(Block block, std::string_view text, http::Events& events) {
  if (text.empty()) return;
  const bool is_thinking = block == Block::kThinking;
  if (open_ != block) {
    end_open_block(events);
    open_ = block;
    std::string data;
    JsonWriter json(data);
    begin_block_event(json, "content_block_start", num_blocks_++).key("content_block").begin_object();
    if (is_thinking) {
      json.member("type", "thinking").member("thinking", "").member("signature", "");
    } else {
      json.member("type", "text").member("text", "");
    }
    json.end_object().end_object();
    append_event(events, "content_block_start", std::move(data));
  }
  std::string data;
  JsonWriter json(data);
  begin_block_event(json, "content_block_delta", num_blocks_ - 1).key("delta").begin_object();
  json.member("type", is_thinking ? "thinking_delta" : "text_delta");
  json.member(is_thinking ? "thinking" : "text", text).end_object().end_object();
  append_event(events, "content_block_delta", std::move(data));
}

void MessagesFormat::append_part(const AnswerPart& part, http::Events& events) {
  switch (part.kind) {
    case AnswerPart::Kind::kText:
      return append_text(Block::kText, part.text, events);
    case AnswerPart::Kind::kReasoning:
      return append_text(Block::kThinking, part.text, events);
    case AnswerPart::Kind::kCall:
      return begin_call(part.text, events);
    case AnswerPart::Kind::kArguments:
      return append_arguments(part.text, events);
    case AnswerPart::Kind::kCallEnd:
      return end_block(events);
  }
}

void MessagesFormat::begin_call(std::string_view name, http::Events& events) {
  end_open_block(events);
  std::string start;
  JsonWriter json(start);
  begin_block_event(json, "content_block_start", num_blocks_++).key("content_block").begin_object();
  json.member("type", "tool_use").member("id", ids_.next("toolu_")).member("name", name);
  json.key("input").begin_object().end_object().end_object().end_object();
  append_event(events, "content_block_start", std::move(start));
}

void MessagesFormat::append_arguments(std::string_view arguments, http::Events& events) {
  std::string delta;
  JsonWriter json(delta);
  begin_block_event(json, "content_block_delta", num_blocks_ - 1).key("delta").begin_object();
  json.member("type", "input_json_delta").member("partial_json", arguments).end_object().end_object();
  append_event(events, "content_block_delta", std::move(delta));
}

void MessagesFormat::end_block(http::Events& events) {
  std::string data;
  JsonWriter json(data);
  begin_block_event(json, "content_block_stop", num_blocks_ - 1).end_object();
  append_event(events, "content_block_stop", std::move(data));
}

void MessagesFormat::end_open_block(http::Events& events) {
  if (std::exchange(open_, Block::kNone) != Block::kNone) end_block(events);
}

void MessagesFormat::append_events(std::int32_t, const RequestOutput& output, const Usage& usage,
                                   http::Events& events) {
  if (!std::exchange(has_begun_, true)) append_start(usage, events);
  ToolCallReader::Parts parts;
  reader_.push(output.text, parts);
  if (output.finish_reason) reader_.finish(parts);
  for (const AnswerPart& part : parts) append_part(part, events);
  if (!output.finish_reason) return;
  end_open_block(events);
  finish_reason_ = *output.finish_reason;
  stop_string_ = output.stop_string;
}

void MessagesFormat::append_last_events(const Usage& usage, http::Events& events) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().member("type", "message_delta").key("delta").begin_object();
  write_stop(json, finish_reason_, stop_string_, reader_.ends_with_calls());
  json.end_object();
  write_usage(json, usage);
  json.end_object();
  append_event(events, "message_delta", std::move(data));
  append_event(events, "message_stop", R"({"type":"message_stop"})");
}

void MessagesFormat::append_failure(const ApiError& error, http::Events& events) const {
  events.push_back({.data = error_json(error, ErrorShape::kAnthropic),
                    .name = "error",
                    .kind = http::Event::Kind::kFailure});
}

}  // namespace kvasir::server::api
