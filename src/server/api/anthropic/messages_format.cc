#include "server/api/anthropic/messages_format.h"

#include <limits>
#include <utility>

namespace kvasir::server::api {
namespace {

constexpr std::int32_t kAnyNumber = std::numeric_limits<std::int32_t>::max();

// Cached tokens are not counted among the others.
void write_usage(JsonWriter& json, const Usage& usage) {
  json.key("usage")
      .begin_object()
      .member("input_tokens", usage.prompt_tokens - usage.cached_tokens)
      .member("cache_creation_input_tokens", 0)
      .member("cache_read_input_tokens", usage.cached_tokens)
      .member("output_tokens", usage.completion_tokens)
      .end_object();
}

void write_stop(JsonWriter& json, FinishReason reason, const std::string& stop_string,
                std::int32_t num_calls) {
  std::string_view name = "end_turn";
  if (reason == FinishReason::kLength)
    name = "max_tokens";
  else if (!stop_string.empty())
    name = "stop_sequence";
  else if (num_calls > 0)
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
    : options_(std::move(options)),
      ids_(ids),
      reader_(options_.tool_calls, options_.tool_names, options_.parallel_tool_calls ? kAnyNumber : 1) {}

void MessagesFormat::begin_message(JsonWriter& json) const {
  json.begin_object()
      .member("id", options_.id)
      .member("type", "message")
      .member("role", "assistant")
      .member("model", options_.model);
}

std::string MessagesFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const ChoiceResult& choice = choices.front();
  const ToolCallReader::Piece message = reader_.read_whole(choice.text);
  std::string body;
  JsonWriter json(body);
  begin_message(json);
  json.key("content").begin_array();
  if (!message.text.empty())
    json.begin_object().member("type", "text").member("text", message.text).end_object();
  for (const ToolCall& call : message.calls) {
    json.begin_object()
        .member("type", "tool_use")
        .member("id", ids_.next("toolu_"))
        .member("name", call.name);
    json.key("input").raw(call.arguments).end_object();
  }
  json.end_array();
  write_stop(json, choice.finish_reason, choice.stop_string, reader_.num_calls());
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

void MessagesFormat::append_text(std::string_view text, http::Events& events) {
  if (text.empty()) return;
  if (!std::exchange(is_in_text_, true)) {
    std::string data;
    JsonWriter json(data);
    begin_block_event(json, "content_block_start", num_blocks_++).key("content_block").begin_object();
    json.member("type", "text").member("text", "").end_object().end_object();
    append_event(events, "content_block_start", std::move(data));
  }
  std::string data;
  JsonWriter json(data);
  begin_block_event(json, "content_block_delta", num_blocks_ - 1).key("delta").begin_object();
  json.member("type", "text_delta").member("text", text).end_object().end_object();
  append_event(events, "content_block_delta", std::move(data));
}

void MessagesFormat::append_call(const ToolCall& call, http::Events& events) {
  if (std::exchange(is_in_text_, false)) end_block(events);
  std::string start;
  JsonWriter json(start);
  begin_block_event(json, "content_block_start", num_blocks_++).key("content_block").begin_object();
  json.member("type", "tool_use").member("id", ids_.next("toolu_")).member("name", call.name);
  json.key("input").begin_object().end_object().end_object().end_object();
  append_event(events, "content_block_start", std::move(start));
  std::string delta;
  JsonWriter delta_json(delta);
  begin_block_event(delta_json, "content_block_delta", num_blocks_ - 1).key("delta").begin_object();
  delta_json.member("type", "input_json_delta")
      .member("partial_json", call.arguments)
      .end_object()
      .end_object();
  append_event(events, "content_block_delta", std::move(delta));
  end_block(events);
}

void MessagesFormat::end_block(http::Events& events) {
  std::string data;
  JsonWriter json(data);
  begin_block_event(json, "content_block_stop", num_blocks_ - 1).end_object();
  append_event(events, "content_block_stop", std::move(data));
}

void MessagesFormat::append_events(std::int32_t, const RequestOutput& output, const Usage& usage,
                                   http::Events& events) {
  if (!std::exchange(has_begun_, true)) append_start(usage, events);
  const auto append = [&](const ToolCallReader::Piece& piece) {
    append_text(piece.text, events);
    for (const ToolCall& call : piece.calls) append_call(call, events);
  };
  append(reader_.push(output.text));
  if (!output.finish_reason) return;
  append(reader_.finish());
  if (std::exchange(is_in_text_, false)) end_block(events);
  finish_reason_ = *output.finish_reason;
  stop_string_ = output.stop_string;
}

void MessagesFormat::append_last_events(const Usage& usage, http::Events& events) {
  std::string data;
  JsonWriter json(data);
  json.begin_object().member("type", "message_delta").key("delta").begin_object();
  write_stop(json, finish_reason_, stop_string_, reader_.num_calls());
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
