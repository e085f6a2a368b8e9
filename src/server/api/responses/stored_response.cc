#include "server/api/responses/stored_response.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "server/api/json_input.h"
#include "server/api/responses/item_references.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

using stored::Kind;

constexpr std::string_view kStopped = "the server stopped before the response was complete";

std::string response_error_json(std::string_view message) {
  std::string error;
  JsonWriter(error).begin_object().member("code", "server_error").member("message", message).end_object();
  return error;
}

// The content of a message that is a text, as the list of parts that clients read.
void write_content(JsonWriter& json, JsonElement content, std::string_view role) {
  if (!content.is_string()) return void(json.raw(simdjson::minify(content)));
  json.begin_array().begin_object();
  json.member("type", role == "assistant" ? "output_text" : "input_text");
  json.member("text", content.get_string().value());
  if (role == "assistant") json.key("annotations").begin_array().end_array();
  json.end_object().end_array();
}

// An item with what a client may leave out: its id, its type, and the parts of its content.
void write_item(JsonWriter& json, JsonElement item, std::string_view response_id, std::size_t number) {
  if (!item.is_object()) return void(json.raw(simdjson::minify(item)));
  const JsonObject object = item.get_object().value();
  json.begin_object();
  const std::string_view id = text_of_member(object, "id"), type = text_of_member(object, "type"),
                         role = text_of_member(object, "role");
  const bool is_message = type == "message" || (type.empty() && !role.empty());
  json.member("id", id.empty() ? item_id(is_message ? "msg_" : "item_", response_id, number) : std::string(id));
  if (is_message) json.member("type", "message").member("status", "completed");
  for (const auto [key, value] : object) {
    if (key == "id" || (is_message && (key == "type" || key == "status"))) continue;
    json.key(key);
    is_message && key == "content" ? write_content(json, value, role) : void(json.raw(simdjson::minify(value)));
  }
  json.end_object();
}

// A response that goes on with another may have no input.
std::string items_json(std::optional<JsonElement> input, std::string_view response_id) {
  std::string items;
  JsonWriter json(items);
  json.begin_array();
  if (input && input->is_string()) {
    json.begin_object().member("id", item_id("msg_", response_id, kFirstInputItem)).member("type", "message").member("status", "completed");
    json.member("role", "user").key("content");
    write_content(json, *input, "user");
    json.end_object();
  } else if (input && input->is_array()) {
    const JsonArray array = input->get_array().value();
    std::size_t number = kFirstInputItem;
    for (const JsonElement item : array) write_item(json, item, response_id, number++);
  }
  json.end_array();
  return items;
}

// The elements of a JSON array, to stand in another one.
std::string_view elements_of(std::string_view array) {
  if (array.size() < 2) return {};
  return array.substr(1, array.size() - 2);
}

std::string joined(const std::vector<std::string>& arrays_from_last) {
  std::string body = "{\"input\":[";
  for (auto array = arrays_from_last.rbegin(); array != arrays_from_last.rend(); ++array) {
    const std::string_view elements = elements_of(*array);
    if (!elements.empty() && !body.ends_with('[')) body += ',';
    body += elements;
  }
  return body + "]}";
}

ApiResult<std::string> input_items_of(stored::ObjectStore& store, const std::string& id, const Limits& limits) {
  auto piece = store.read(id, 0, limits.body_bytes.max);
  if (!piece) return std::unexpected(to_store_error(std::move(piece).error()));
  return std::move(piece->bytes);
}

struct EndedResponse {
  std::string status;
  std::string output;  // a JSON array
};

ApiResult<EndedResponse> read_ended(const stored::Object& response, const Limits& limits) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(response.json, limits));
  const auto status = find_member(document.root(), "status"), output = find_member(document.root(), "output");
  if (!status || !output) return std::unexpected(ApiError{500, "the stored response is damaged"});
  return EndedResponse{std::string(status->get_string().value()), simdjson::minify(*output)};
}

std::unexpected<ApiError> previous_not_found(const std::string& id, bool is_first) {
  return bad_request(fmt::format("Previous response with id '{}' not found{}.",
                                 printable(std::string_view(id).substr(0, 128)),
                                 is_first ? "" : ": an earlier part of the conversation is gone"),
                     "previous_response_id", "previous_response_not_found");
}

// Walks back from a response. Appends output and input of each, the last first.
ApiStatus walk_back(stored::ObjectStore& store, const std::string& owner, std::string id, const Limits& limits,
                    bool must_be_whole, std::vector<std::string>& arrays) {
  std::int64_t num_bytes = 0, num_responses = 0;
  for (bool is_first = true; !id.empty(); is_first = false) {
    auto found = store.find(Kind::kResponse, owner, id);
    if (!found) return std::unexpected(to_store_error(std::move(found).error()));
    if (!found->has_value() || ++num_responses > limits.messages.max) {
      return must_be_whole ? ApiStatus(previous_not_found(id, is_first)) : ApiStatus();
    }
    const stored::Object& response = **found;
    KVASIR_TRY(EndedResponse ended, read_ended(response, limits));
    if (must_be_whole && ended.status != "completed" && ended.status != "incomplete") {
      return bad_request(fmt::format("the response '{}' has status {}: only what has ended goes on", id, ended.status),
                         "previous_response_id", "invalid_status");
    }
    KVASIR_TRY(std::string input, input_items_of(store, id, limits));
    num_bytes += std::ssize(input) + std::ssize(ended.output);
    if (num_bytes > limits.body_bytes.max) {
      return bad_request(fmt::format("the conversation has more than {} bytes, the limit of a body (--{})",
                                     limits.body_bytes.max, limits.body_bytes.flag),
                         "previous_response_id", "limit_exceeded");
    }
    arrays.push_back(std::move(ended.output));
    arrays.push_back(std::move(input));
    id = response.parent;
  }
  return {};
}

}  // namespace

std::string owner_of(const http::ResponseWriter& writer) { return writer.request().tenant.key_id; }

ApiResult<StoredResponse> begin_response(const ApiContext& context, const http::ResponseWriter& writer,
                                         const std::string& body, const ResponsesFormat::Options& options) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(body, context.limits));
  const auto input = find_member(document.root(), "input");
  return StoredResponse{.object = {.kind = Kind::kResponse,
                                   .id = options.id,
                                   .owner = owner_of(writer),
                                   .parent = options.request.previous_response_id,
                                   .created_s = options.created_s},
                        .input_items = std::make_shared<const std::string>(items_json(input, options.id))};
}

ApiResult<std::string> add_response(stored::ObjectStore& store, const StoredResponse& response) {
  const Status added = store.add(response.object, {{.name = {}, .bytes = *response.input_items}});
  if (!added) return std::unexpected(to_store_error(added.error()));
  return response.object.json;
}

void mark_in_progress(const ApiContext& context, const StoredResponse& response) {
  store_of(context).post([id = response.object.id](stored::ObjectStore& store) {
    static_cast<void>(store.set_status(id, "in_progress", {}, true));
  });
}

void end_response(const ApiContext& context, const StoredResponse& response, std::string json) {
  store_of(context).post([&context, response, json = std::move(json)](stored::ObjectStore& store) {
    Status kept;
    if (response.object.is_pinned) {
      if (const auto updated = store.update(response.object.id, json, false); !updated) {
        kept = std::unexpected(updated.error());
      }
    } else {
      stored::Object object = response.object;
      object.json = json;
      kept = store.add(object, {{.name = {}, .bytes = *response.input_items}});
    }
    if (kept) return;
    context.refusals.note(fmt::format("a response was not stored: {}", kept.error().message),
                          observe::RefusalLog::Clock::now());
  });
}

void fail_response(const ApiContext& context, const StoredResponse& response, const std::string& error_body) {
  std::string message = "the generation failed";
  if (const auto document = JsonDocument::parse(error_body, context.limits)) {
    const auto error = find_member(document->root(), "error");
    const auto text = error && error->is_object() ? find_member(error->get_object().value(), "message") : std::nullopt;
    if (text && text->is_string()) message = text->get_string().value();
  }
  store_of(context).post(
      [id = response.object.id, error = response_error_json(message)](stored::ObjectStore& store) {
        static_cast<void>(store.set_status(id, "failed", error, false));
      });
}

Status fail_unfinished(stored::ObjectStore& store) {
  KVASIR_TRY(const std::vector<stored::Object> unfinished, store.pinned(Kind::kResponse));
  for (const stored::Object& response : unfinished) {
    const auto failed = store.set_status(response.id, "failed", response_error_json(kStopped), false);
    if (!failed) return std::unexpected(failed.error());
  }
  return {};
}

ApiResult<std::string> conversation_until(stored::ObjectStore& store, const std::string& owner,
                                          const std::string& id, const Limits& limits) {
  std::vector<std::string> arrays;
  KVASIR_CHECKED(walk_back(store, owner, id, limits, /*must_be_whole=*/true, arrays));
  return joined(arrays);
}

void continue_conversation(const ApiContext& context, const Writer& writer, const std::string& id,
                           std::function<ApiStatus(const std::string& conversation)> answer) {
  const auto load = [owner = owner_of(*writer), id, limits = &context.limits](stored::ObjectStore& store) {
    return conversation_until(store, owner, id, *limits);
  };
  const auto go_on = [&context, writer, answer = std::move(answer)](const std::string& conversation) {
    RequestMemory::Share memory(context.memory, writer->request().tenant.name);
    ApiStatus answered = plan_answer(*writer, body_memory_bytes(conversation), memory);
    if (answered) answered = answer(conversation);
    respond_unless(answered, *writer);
  };
  ask_store(context, writer, load, go_on);
}

ApiResult<std::vector<std::string>> items_of(stored::ObjectStore& store, const std::string& owner, const std::string& id,
                                             const Limits& limits) {
  auto found = store.find(Kind::kResponse, owner, id);
  if (!found) return std::unexpected(to_store_error(std::move(found).error()));
  if (!found->has_value()) return std::vector<std::string>();
  KVASIR_TRY(EndedResponse ended, read_ended(**found, limits));
  KVASIR_TRY(std::string input, input_items_of(store, id, limits));
  return std::vector<std::string>{std::move(ended.output), std::move(input)};
}

ApiResult<std::string> input_of(stored::ObjectStore& store, const stored::Object& response, const Limits& limits) {
  std::vector<std::string> arrays;
  KVASIR_TRY(std::string own, input_items_of(store, response.id, limits));
  arrays.push_back(std::move(own));
  KVASIR_CHECKED(walk_back(store, response.owner, response.parent, limits, /*must_be_whole=*/false, arrays));
  return joined(arrays);
}

}  // namespace kvasir::server::api
