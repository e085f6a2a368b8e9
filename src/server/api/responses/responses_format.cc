#include "server/api/responses/responses_format.h"

#include <fmt/format.h>

#include <ctime>
#include <utility>

#include "server/api/openai/logprobs_json.h"
#include "server/api/responses/item_references.h"
#include "server/observe/kv_usage_json.h"

namespace kvasir::server::api {
namespace {

std::string message_item(const std::string& id, std::string_view status, std::string_view part) {
  std::string item;
  JsonWriter json(item);
  json.begin_object().member("id", id).member("type", "message").member("status", status);
  json.member("role", "assistant").key("content").begin_array();
  if (!part.empty()) json.raw(part);
  json.end_array().end_object();
  return item;
}

std::string reasoning_part(std::string_view text) {
  std::string part;
  JsonWriter(part).begin_object().member("type", "reasoning_text").member("text", text).end_object();
  return part;
}

std::string reasoning_item(const std::string& id, std::string_view status, std::string_view part) {
  std::string item;
  JsonWriter json(item);
  json.begin_object().member("id", id).member("type", "reasoning").member("status", status);
  json.key("summary").begin_array().end_array().key("content").begin_array();
  if (!part.empty()) json.raw(part);
  json.end_array().end_object();
  return item;
}

void write_token_usage(JsonWriter& json, const Usage& usage, std::int32_t num_reasoning_tokens) {
  json.begin_object().member("input_tokens", usage.prompt_tokens);
  json.key("input_tokens_details")
      .begin_object()
      .member("cached_tokens", usage.cached_tokens)
      .member("cache_write_tokens", 0)
      .end_object();
  json.member("output_tokens", usage.completion_tokens);
  json.key("output_tokens_details").begin_object();
  json.member("reasoning_tokens", num_reasoning_tokens).end_object();
  json.member("total_tokens", std::int64_t{usage.prompt_tokens} + usage.completion_tokens);
  observe::member_kv_usage(json, usage.kv);
  json.end_object();
}

void append_event(http::Events& events, std::string_view type, std::string data) {
  events.push_back({.data = std::move(data), .name = std::string(type)});
}

}  // namespace

ResponsesFormat::ResponsesFormat(Options options, const text::Tokenizer& tokenizer, IdSource& ids)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      ids_(ids),
      reader_(options_.tool_calls, options_.tool_calls.counts),
      reasoning_tokens_(options_.tool_calls, tokenizer) {}

std::string_view ResponsesFormat::final_status() const {
  return finish_reason_ == FinishReason::kLength ? "incomplete" : "completed";
}

void ResponsesFormat::write_logprobs(JsonWriter& json, std::span<const PositionLogprobs> logprobs) const {
  json.key("logprobs");
  write_token_logprobs(json, logprobs, tokenizer_);
}

ResponsesFormat::Json ResponsesFormat::text_part(std::string_view text,
                                                 std::span<const PositionLogprobs> logprobs) const {
  Json part;
  JsonWriter json(part);
  json.begin_object().member("type", "output_text").member("text", text);
  json.key("annotations").begin_array().end_array();
  write_logprobs(json, logprobs);
  json.end_object();
  return part;
}

// The request's settings, as the answer repeats them.
void ResponsesFormat::write_settings(JsonWriter& json) const {
  const ResponsesRequest& request = options_.request;
  json.key("instructions");
  if (request.instructions.empty()) {
    json.null();
  } else {
    json.value(request.instructions);
  }
  json.key("max_output_tokens");
  if (request.max_output_tokens) {
    json.value(*request.max_output_tokens);
  } else {
    json.null();
  }
  json.member("temperature", request.sampling.temperature).member("top_p", request.sampling.top_p);
  json.key("tool_choice");
  if (request.named_tool.empty()) {
    json.value(request.tool_choice);
  } else {
    json.begin_object().member("type", "function").member("name", request.named_tool).end_object();
  }
  json.key("tools").raw(request.tools_json);
  json.member("parallel_tool_calls", request.parallel_tool_calls).key("metadata").raw(request.metadata_json);
  json.key("text").begin_object().key("format").raw(request.format_json).end_object();
  json.member("top_logprobs", request.top_logprobs).member("truncation", "disabled");
  json.member("store", options_.is_stored).member("background", request.background);
  json.key("previous_response_id");
  if (request.previous_response_id.empty()) {
    json.null();
  } else {
    json.value(request.previous_response_id);
  }
  json.key("reasoning").begin_object().member_null("effort").member_null("summary").end_object();
}

void ResponsesFormat::write_response(JsonWriter& json, const Progress& progress) const {
  json.begin_object().member("id", options_.id).member("object", "response");
  json.member("created_at", options_.created_s).key("completed_at");
  if (progress.status == "completed") {
    json.value(static_cast<std::int64_t>(std::time(nullptr)));
  } else {
    json.null();
  }
  json.member("model", options_.model).member("status", progress.status).key("error");
  if (progress.error != nullptr) {
    json.begin_object()
        .member("code", "server_error")
        .member("message", progress.error->message)
        .end_object();
  } else {
    json.null();
  }
  json.key("incomplete_details");
  if (progress.status == "incomplete") {
    json.begin_object().member("reason", "max_output_tokens").end_object();
  } else {
    json.null();
  }
  json.key("output").begin_array();
  for (const Json& item : items_) json.raw(item);
  json.end_array();
  write_settings(json);
  json.key("usage");
  if (progress.usage != nullptr) {
    write_token_usage(json, *progress.usage, reasoning_tokens_.count());
  } else {
    json.null();
  }
  json.end_object();
}

std::string ResponsesFormat::next_item_id(std::string_view prefix) { return item_id(prefix, options_.id, num_ids_++); }

CallItem ResponsesFormat::begin_item(ToolCall call) {
  CallItem item = begin_call_item(std::move(call), options_.request.tool_origins, ids_);
  item.id = next_item_id(item.is_custom() ? "ctc_" : "fc_");
  return item;
}

std::string ResponsesFormat::queued() const {
  std::string body;
  JsonWriter json(body);
  write_response(json, {.status = "queued"});
  return body;
}

std::string ResponsesFormat::whole(const std::vector<ChoiceResult>& choices, const Usage& usage) {
  const ChoiceResult& choice = choices.front();
  finish_reason_ = choice.finish_reason;
  add_tokens(choice.token_ids, choice.logprobs);
  const ReadAnswer answer = read_answer(options_.tool_calls, choice.text);
  const bool is_thought_alone = answer.text.empty() && answer.calls.empty() && !answer.reasoning.empty();
  if (!answer.reasoning.empty()) {
    items_.push_back(reasoning_item(next_item_id("rs_"), is_thought_alone ? final_status() : "completed",
                                    reasoning_part(answer.reasoning)));
  }
  if (!answer.text.empty() || (answer.calls.empty() && !is_thought_alone)) {
    items_.push_back(
        message_item(next_item_id("msg_"), final_status(), text_part(answer.text, logprobs_)));
  }
  for (const ToolCall& call : answer.calls) {
    const CallItem item = begin_item(call);
    items_.push_back(call_item_json(item, call.is_complete ? "completed" : "incomplete"));
  }
  std::string body;
  JsonWriter json(body);
  write_response(json, {.status = final_status(), .usage = &usage});
  keep(body);
  return body;
}

JsonWriter& ResponsesFormat::begin_event(JsonWriter& json, std::string_view type) const {
  return json.begin_object().member("type", type).member("sequence_number", num_events_++);
}

void ResponsesFormat::append_response_event(std::string_view type, const Progress& progress,
                                            http::Events& events) const {
  std::string data;
  JsonWriter json(data);
  begin_event(json, type).key("response");
  std::string response;
  JsonWriter response_json(response);
  write_response(response_json, progress);
  json.raw(response).end_object();
  append_event(events, type, std::move(data));
  if (progress.status != "in_progress") keep(std::move(response));
}

// For the item that comes after those that are whole.
void ResponsesFormat::append_item_event(std::string_view type, const Json& item, http::Events& events) const {
  std::string data;
  JsonWriter json(data);
  begin_event(json, type).member("output_index", items_.size()).key("item").raw(item).end_object();
  append_event(events, type, std::move(data));
}

void ResponsesFormat::append_part_event(std::string_view type, const OpenItem& item, const Json& part,
                                        http::Events& events) const {
  std::string data;
  JsonWriter json(data);
  begin_event(json, type).member("item_id", item.id).member("output_index", items_.size());
  json.member("content_index", 0).key("part").raw(part).end_object();
  append_event(events, type, std::move(data));
}

// The log probabilities of thoughts are not the message's.
void ResponsesFormat::add_tokens(std::span<const TokenId> tokens, std::span<const PositionLogprobs> logprobs) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_thought = reasoning_tokens_.add(tokens[i]);
    if (!is_thought && i < logprobs.size()) logprobs_.push_back(logprobs[i]);
  }
}

void ResponsesFormat::begin_text(http::Events& events) {
  if (!message_.id.empty()) return;
  end_reasoning("completed", events);
  message_.id = next_item_id("msg_");
  append_item_event("response.output_item.added", message_item(message_.id, "in_progress", {}), events);
  append_part_event("response.content_part.added", message_, text_part({}, {}), events);
}

void ResponsesFormat::append_text(std::string_view text, http::Events& events) {
  if (text.empty()) return;
  begin_text(events);
  message_.text += text;
  std::string data;
  JsonWriter json(data);
  begin_event(json, "response.output_text.delta").member("item_id", message_.id);
  json.member("output_index", items_.size()).member("content_index", 0).member("delta", text);
  write_logprobs(json, std::span(logprobs_).subspan(num_logprobs_sent_));
  json.end_object();
  num_logprobs_sent_ = logprobs_.size();
  append_event(events, "response.output_text.delta", std::move(data));
}

void ResponsesFormat::end_text(std::string_view status, http::Events& events) {
  if (message_.id.empty()) return;
  std::string data;
  JsonWriter json(data);
  begin_event(json, "response.output_text.done").member("item_id", message_.id);
  json.member("output_index", items_.size()).member("content_index", 0).member("text", message_.text);
  write_logprobs(json, logprobs_);
  json.end_object();
  append_event(events, "response.output_text.done", std::move(data));
  const Json part = text_part(message_.text, logprobs_);
  append_part_event("response.content_part.done", message_, part, events);
  Json item = message_item(message_.id, status, part);
  append_item_event("response.output_item.done", item, events);
  items_.push_back(std::move(item));
  message_ = {};
  logprobs_.clear();
  num_logprobs_sent_ = 0;
}

void ResponsesFormat::append_reasoning(std::string_view text, http::Events& events) {
  if (reasoning_.id.empty()) {
    end_text("completed", events);
    reasoning_.id = next_item_id("rs_");
    append_item_event("response.output_item.added", reasoning_item(reasoning_.id, "in_progress", {}), events);
    append_part_event("response.content_part.added", reasoning_, reasoning_part({}), events);
  }
  reasoning_.text += text;
  append_reasoning_event("response.reasoning_text.delta", "delta", text, events);
}

void ResponsesFormat::append_reasoning_event(std::string_view type, std::string_view member,
                                             std::string_view text, http::Events& events) const {
  std::string data;
  JsonWriter json(data);
  begin_event(json, type).member("item_id", reasoning_.id).member("output_index", items_.size());
  json.member("content_index", 0).member(member, text).end_object();
  append_event(events, type, std::move(data));
}

void ResponsesFormat::end_reasoning(std::string_view status, http::Events& events) {
  if (reasoning_.id.empty()) return;
  append_reasoning_event("response.reasoning_text.done", "text", reasoning_.text, events);
  const Json part = reasoning_part(reasoning_.text);
  append_part_event("response.content_part.done", reasoning_, part, events);
  Json item = reasoning_item(reasoning_.id, status, part);
  append_item_event("response.output_item.done", item, events);
  items_.push_back(std::move(item));
  reasoning_ = {};
}

void ResponsesFormat::append_part(const AnswerPart& part, http::Events& events) {
  switch (part.kind) {
    case AnswerPart::Kind::kText:
      return append_text(part.text, events);
    case AnswerPart::Kind::kReasoning:
      return append_reasoning(part.text, events);
    case AnswerPart::Kind::kCall:
      return begin_call(part.text, events);
    case AnswerPart::Kind::kArguments:
      return append_arguments(part.text, events);
    case AnswerPart::Kind::kCallEnd:
      return end_call(part.end, events);
  }
}

void ResponsesFormat::begin_call(const std::string& name, http::Events& events) {
  end_reasoning("completed", events);
  end_text("completed", events);
  call_ = begin_item({.name = name, .arguments = {}});
  append_item_event("response.output_item.added", call_item_json(call_, "in_progress"), events);
}

void ResponsesFormat::append_arguments(std::string_view arguments, http::Events& events) {
  call_.call.arguments += arguments;
  if (!call_.is_custom()) append_call_event("response.function_call_arguments.delta", "delta", arguments, events);
}

void ResponsesFormat::append_call_event(std::string_view type, std::string_view member,
                                        std::string_view arguments, http::Events& events) const {
  std::string data;
  JsonWriter json(data);
  begin_event(json, type).member("item_id", call_.id).member("output_index", items_.size());
  if (!call_.is_custom()) json.member("name", call_.origin.name);
  json.member(member, arguments).end_object();
  append_event(events, type, std::move(data));
}

// A custom tool's text is known when the arguments around it are whole.
void ResponsesFormat::end_call(CallEnd end, http::Events& events) {
  const std::string text = call_text(call_);
  if (call_.is_custom()) {
    append_call_event("response.custom_tool_call_input.delta", "delta", text, events);
    append_call_event("response.custom_tool_call_input.done", "input", text, events);
  } else {
    append_call_event("response.function_call_arguments.done", "arguments", text, events);
  }
  Json item = call_item_json(call_, end == CallEnd::kComplete ? "completed" : "incomplete");
  append_item_event("response.output_item.done", item, events);
  items_.push_back(std::move(item));
}

void ResponsesFormat::append_events(std::int32_t, const RequestOutput& output, const Usage&,
                                    http::Events& events) {
  if (!std::exchange(has_begun_, true)) {
    append_response_event("response.created", {.status = "in_progress"}, events);
    append_response_event("response.in_progress", {.status = "in_progress"}, events);
  }
  add_tokens(output.token_ids, output.logprobs);
  ToolCallReader::Parts parts;
  reader_.push(output.text, parts);
  if (output.finish_reason) reader_.finish(parts);
  for (const AnswerPart& part : parts) append_part(part, events);
  if (!output.finish_reason) return;
  finish_reason_ = *output.finish_reason;
  end_reasoning(final_status(), events);
  if (items_.empty()) begin_text(events);
  end_text(final_status(), events);
}

void ResponsesFormat::append_last_events(const Usage& usage, http::Events& events) {
  append_response_event(fmt::format("response.{}", final_status()),
                        {.status = final_status(), .usage = &usage}, events);
}

void ResponsesFormat::append_failure(const ApiError& error, http::Events& events) const {
  append_response_event("response.failed", {.status = "failed", .error = &error}, events);
  events.back().kind = http::Event::Kind::kFailure;
}

}  // namespace kvasir::server::api
