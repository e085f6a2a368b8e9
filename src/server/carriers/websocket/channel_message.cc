#include "server/carriers/websocket/channel_message.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "server/api/json_input.h"

namespace kvasir::server::carriers {
namespace {

constexpr std::string_view kMembers[] = {"id", "path", "body", "cancel"};

JsonWriter& begin_message(JsonWriter& json, std::string_view id) {
  json.begin_object().key("id");
  return id.empty() ? json.null() : json.value(id);
}

void append_headers(JsonWriter& json, std::span<const http::Header> headers) {
  json.begin_object();
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const auto has_name = [&](const http::Header& other) { return other.name == headers[i].name; };
    if (std::ranges::any_of(headers.first(i), has_name)) continue;
    std::string value = headers[i].value;
    for (const http::Header& other : headers.subspan(i + 1)) {
      if (has_name(other)) value += ", " + other.value;
    }
    json.member(headers[i].name, value);
  }
  json.end_object();
}

}  // namespace

ApiResult<ChannelMessage> parse_channel_message(std::string_view text, const Limits& limits,
                                                std::string& id) {
  KVASIR_TRY(const api::JsonDocument document, api::JsonDocument::parse(text, limits));
  ChannelMessage message;
  const auto member = [&](std::string_view name) -> ApiResult<api::FieldInput> {
    const auto json = api::find_member(document.root(), name);
    if (!json) return bad_request(fmt::format("{} is missing", name), std::string(name), "missing_parameter");
    return api::FieldInput{std::string(name), *json, limits};
  };
  KVASIR_TRY(const api::FieldInput name, member("id"));
  KVASIR_TRY(message.id, api::string_of(name));
  if (message.id.empty() || message.id.size() > ChannelMessage::kMaxIdBytes) {
    return bad_request(
        fmt::format("id: {} bytes, it has 1 to {}", message.id.size(), ChannelMessage::kMaxIdBytes), "id");
  }
  id = message.id;
  for (const auto [key, json] : document.root()) {
    if (std::ranges::find(kMembers, key) == std::end(kMembers))
      api::warn_unknown_field(key, kMembers, message.warnings);
  }
  if (const auto cancel = api::find_member(document.root(), "cancel")) {
    KVASIR_TRY(message.cancel, api::boolean_of({"cancel", *cancel, limits}));
    if (message.cancel &&
        (api::find_member(document.root(), "path") || api::find_member(document.root(), "body"))) {
      return bad_request("cancel: a message that cancels has neither path nor body", "cancel");
    }
    if (message.cancel) return message;
  }
  KVASIR_TRY(const api::FieldInput path, member("path"));
  KVASIR_TRY(message.path, api::string_of(path));
  KVASIR_TRY(const api::FieldInput body, member("body"));
  KVASIR_CHECKED(api::object_of(body));
  message.body = simdjson::minify(body.json);
  return message;
}

std::string status_message(std::string_view id, int status, std::span<const http::Header> headers,
                           std::string_view body) {
  std::string message;
  JsonWriter json(message);
  begin_message(json, id).member("status", status);
  append_headers(json.key("headers"), headers);
  if (!body.empty()) json.key("body").raw(body);
  json.end_object();
  return message;
}

std::string event_message(std::string_view id, std::string_view event) {
  std::string message;
  JsonWriter json(message);
  begin_message(json, id).key("event").raw(event).end_object();
  return message;
}

std::string end_message(std::string_view id, std::string_view how) {
  std::string message;
  JsonWriter json(message);
  begin_message(json, id).member("end", how).end_object();
  return message;
}

}  // namespace kvasir::server::carriers
