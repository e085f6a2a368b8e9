#include "server/api/responses/item_references.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/json_input.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"
#include "server/stored/object_store.h"

namespace kvasir::server::api {
namespace {

constexpr std::size_t kResponseDigits = 24, kItemDigits = 4;
using Items = std::map<std::string, std::string, std::less<>>;  // JSON by id

// Of the response whose item the id is; empty: no id of item_id().
std::string response_of(std::string_view id) {
  const std::string_view digits = id.substr(id.rfind('_') + 1);
  const auto is_hex = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  if (digits.size() != kResponseDigits + kItemDigits || !std::ranges::all_of(digits, is_hex)) return {};
  return fmt::format("resp_{}", digits.substr(0, kResponseDigits));
}

// The id that an item of an input refers to; empty: it is no reference.
std::string_view referenced_id(JsonElement item) {
  if (!item.is_object()) return {};
  const JsonObject object = item.get_object().value();
  const std::string_view type = text_of_member(object, "type");
  const bool is_bare = type.empty() && !find_member(object, "role");
  return type == "item_reference" || is_bare ? text_of_member(object, "id") : std::string_view();
}

std::vector<std::string> references_in(std::string_view body, const Limits& limits) {
  std::vector<std::string> ids;
  if (!body.contains("\"id\"")) return ids;
  const auto document = JsonDocument::parse(body, limits);
  if (!document) return ids;  // the endpoint says what is wrong
  const auto input = find_member(document->root(), "input");
  if (!input || !input->is_array()) return ids;
  const JsonArray items = input->get_array().value();
  for (const JsonElement item : items) {
    const std::string_view id = referenced_id(item);
    if (!response_of(id).empty()) ids.emplace_back(id);
  }
  return ids;
}

void collect(std::string_view array, const std::vector<std::string>& ids, const Limits& limits, Items& items) {
  const auto document = JsonDocument::parse(fmt::format("{{\"items\":{}}}", array), limits);
  const auto list = document ? find_member(document->root(), "items") : std::nullopt;
  if (!list || !list->is_array()) return;
  const JsonArray elements = list->get_array().value();
  for (const JsonElement item : elements) {
    if (!item.is_object()) continue;
    const std::string id(text_of_member(item.get_object().value(), "id"));
    if (std::ranges::find(ids, id) != ids.end()) items[id] = simdjson::minify(item);
  }
}

ApiResult<Items> stored_items(stored::ObjectStore& store, const std::string& owner, const std::vector<std::string>& ids,
                              const Limits& limits) {
  std::vector<std::string> responses;
  for (const std::string& id : ids) responses.push_back(response_of(id));
  std::ranges::sort(responses);
  responses.erase(std::ranges::unique(responses).begin(), responses.end());
  Items items;
  for (const std::string& id : responses) {
    KVASIR_TRY(const std::vector<std::string> arrays, items_of(store, owner, id, limits));
    for (const std::string& array : arrays) collect(array, ids, limits, items);
  }
  return items;
}

std::string with_items(std::string_view body, const Items& items, const Limits& limits) {
  const auto document = JsonDocument::parse(body, limits);
  std::string made;
  JsonWriter json(made);
  json.begin_object();
  for (const auto [key, value] : document->root()) {
    json.key(key);
    if (key != "input" || !value.is_array()) {
      json.raw(simdjson::minify(value));
      continue;
    }
    json.begin_array();
    const JsonArray array = value.get_array().value();
    for (const JsonElement item : array) {
      const auto found = items.find(referenced_id(item));
      json.raw(found == items.end() ? simdjson::minify(item) : found->second);
    }
    json.end_array();
  }
  json.end_object();
  return made;
}

}  // namespace

std::string item_id(std::string_view prefix, std::string_view response_id, std::size_t number) {
  return fmt::format("{}{}{:04x}", prefix, response_id.substr(response_id.rfind('_') + 1), number);
}

void with_referenced_items(const ApiContext& context, const Writer& writer, AnswerBody answer) {
  const std::string& body = writer->request().body;
  std::vector<std::string> ids;
  if (context.stored != nullptr) ids = references_in(body, context.limits);
  if (ids.empty()) return respond_unless(answer(std::shared_ptr<const std::string>(writer, &body)), *writer);
  if (ApiStatus may = check_limits(context, *writer); !may) return respond_unless(may, *writer);
  const auto load = [owner = owner_of(*writer), ids = std::move(ids), limits = &context.limits](stored::ObjectStore& store) {
    return stored_items(store, owner, ids, *limits);
  };
  const auto go_on = [&context, writer, answer = std::move(answer)](const Items& items) {
    auto whole = std::make_shared<const std::string>(with_items(writer->request().body, items, context.limits));
    RequestMemory::Share memory(context.memory, writer->request().tenant.name);
    ApiStatus answered = plan_answer(*writer, body_memory_bytes(*whole), memory);
    if (answered && std::ssize(*whole) > context.limits.body_bytes.max) {
      answered = std::unexpected(beyond(context.limits.body_bytes, std::ssize(*whole), "input"));
    }
    if (answered) answered = answer(whole);
    respond_unless(answered, *writer);
  };
  ask_store(context, writer, load, go_on);
}

}  // namespace kvasir::server::api
