#include "server/api/responses/response_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {
namespace {

constexpr auto kEnds = std::to_array<std::string_view>({"completed", "incomplete", "failed", "cancelled"});

// The object with other members in the place of its own, which must be there to be written.
using Members = std::vector<std::pair<std::string_view, std::string_view>>;  // name, JSON

std::string with_members(JsonObject object, const Members& members) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto [name, value] : object) {
    const auto other = std::ranges::find(members, name, &Members::value_type::first);
    json.key(name);
    other == members.end() ? json.raw(simdjson::minify(value)) : json.raw(other->second);
  }
  json.end_object();
  return text;
}

class Replay {
 public:
  http::Events events;

  void add_response(std::string_view type, std::string_view response) {
    std::string data;
    begin(data, type).key("response").raw(response).end_object();
    add(type, std::move(data));
  }

  void add_item(JsonObject item) {
    const std::string_view type_name = text_of_member(item, "type");
    if (type_name == "message" || type_name == "reasoning") {
      add_of_item("response.output_item.added",
                  with_members(item, {{"status", "\"in_progress\""}, {"content", "[]"}}));
      add_parts(item);
    } else {
      const bool is_custom = type_name == "custom_tool_call";
      const std::string_view member = is_custom ? "input" : "arguments";
      add_of_item("response.output_item.added",
                  with_members(item, {{"status", "\"in_progress\""}, {member, "\"\""}}));
      const std::string type =
          is_custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
      add_of_call(item, type + ".delta", "delta", text_of_member(item, member));
      add_of_call(item, type + ".done", member, text_of_member(item, member));
    }
    add_of_item("response.output_item.done", simdjson::minify(item));
    ++output_index_;
  }

 private:
  JsonWriter& begin(std::string& data, std::string_view type) {
    writer_.emplace(data);
    return writer_->begin_object().member("type", type).member("sequence_number", events.size());
  }
  void add(std::string_view type, std::string data) {
    events.push_back({.data = std::move(data), .name = std::string(type)});
  }

  void add_of_item(std::string_view type, const std::string& item) {
    std::string data;
    begin(data, type).member("output_index", output_index_).key("item").raw(item).end_object();
    add(type, std::move(data));
  }

  void add_of_call(JsonObject item, std::string_view type, std::string_view member, std::string_view text) {
    std::string data;
    begin(data, type).member("item_id", text_of_member(item, "id")).member("output_index", output_index_);
    if (text_of_member(item, "type") == "function_call") writer_->member("name", text_of_member(item, "name"));
    writer_->member(member, text).end_object();
    add(type, std::move(data));
  }

  void add_parts(JsonObject item) {
    const auto content = find_member(item, "content");
    if (!content || !content->is_array()) return;
    std::int64_t index = 0;
    const JsonArray parts = content->get_array().value();
    for (const JsonElement part : parts) {
      if (part.is_object()) add_part(text_of_member(item, "id"), index, part.get_object().value());
      ++index;
    }
  }

  void add_part(std::string_view item_id, std::int64_t index, JsonObject part) {
    const auto logprobs = find_member(part, "logprobs");
    const std::string logprobs_json = logprobs ? simdjson::minify(*logprobs) : "[]";
    const auto begin_part = [&](std::string& data, std::string_view type) -> JsonWriter& {
      return begin(data, type)
          .member("item_id", item_id)
          .member("output_index", output_index_)
          .member("content_index", index);
    };
    const auto add_of_part = [&](std::string_view type, const std::string& json) {
      std::string data;
      begin_part(data, type).key("part").raw(json).end_object();
      add(type, std::move(data));
    };
    const bool is_reasoning = text_of_member(part, "type") == "reasoning_text";
    const auto add_text = [&](std::string_view event, std::string_view member) {
      const std::string type = fmt::format("response.{}.{}", is_reasoning ? "reasoning_text" : "output_text", event);
      std::string data;
      begin_part(data, type).member(member, text_of_member(part, "text"));
      if (!is_reasoning) writer_->key("logprobs").raw(logprobs_json);
      writer_->end_object();
      add(type, std::move(data));
    };
    add_of_part("response.content_part.added", with_members(part, {{"text", "\"\""}, {"logprobs", "[]"}}));
    if (!text_of_member(part, "text").empty()) add_text("delta", "delta");
    add_text("done", "text");
    add_of_part("response.content_part.done", simdjson::minify(part));
  }

  std::optional<JsonWriter> writer_;
  std::int64_t output_index_ = 0;
};

bool is_end(std::string_view status) { return std::ranges::find(kEnds, status) != kEnds.end(); }

}  // namespace

bool has_ended(std::string_view response, const Limits& limits) {
  const auto document = JsonDocument::parse(response, limits);
  return document && is_end(text_of_member(document->root(), "status"));
}

ApiResult<http::Events> events_of_response(std::string_view response, const Limits& limits) {
  const auto document = JsonDocument::parse(response, limits);
  const auto output = document ? find_member(document->root(), "output") : std::nullopt;
  if (!output || !output->is_array()) return std::unexpected(ApiError{500, "the stored response is damaged"});
  const std::string_view status = text_of_member(document->root(), "status");
  const std::string begun = with_members(document->root(), {{"status", "\"in_progress\""},
                                                            {"completed_at", "null"},
                                                            {"error", "null"},
                                                            {"incomplete_details", "null"},
                                                            {"output", "[]"},
                                                            {"usage", "null"}});
  Replay replay;
  replay.add_response("response.created", begun);
  replay.add_response("response.in_progress", begun);
  if (!is_end(status)) return std::move(replay.events);
  const JsonArray items = output->get_array().value();
  for (const JsonElement item : items) {
    if (item.is_object()) replay.add_item(item.get_object().value());
  }
  replay.add_response(fmt::format("response.{}", status), response);
  return std::move(replay.events);
}

}  // namespace kvasir::server::api
