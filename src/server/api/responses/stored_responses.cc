// GET, DELETE /v1/responses/*, GET .../input_items, POST .../cancel

#include <algorithm>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/endpoint.h"
#include "server/api/json_input.h"
#include "server/api/list_page.h"
#include "server/api/responses/stored_response.h"
#include "server/api/responses/stored_stream.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

using stored::Kind;

ApiResult<stored::Object> find_response(stored::ObjectStore& store, const std::string& owner,
                                        const std::string& id) {
  auto found = store.find(Kind::kResponse, owner, id);
  if (!found) return std::unexpected(to_store_error(std::move(found).error()));
  if (!found->has_value()) return std::unexpected(no_such("Response", id, "response_id"));
  return std::move(**found);
}

void get_response(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto stream = http::query_value(writer->request().query, "stream");
  if (stream && (*stream == "true" || *stream == "1")) {
    return stream_stored_response(context, writer, id);
  }
  const auto find = [owner = owner_of(*writer), id](stored::ObjectStore& store) {
    return find_response(store, owner, id);
  };
  ask_store(context, writer, find,
            [writer](stored::Object response) { writer->respond({.body = std::move(response.json)}); });
}

void delete_response(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto erase = [owner = owner_of(*writer), id](stored::ObjectStore& store) -> ApiResult<bool> {
    const auto erased = store.erase(Kind::kResponse, owner, id);
    if (!erased) return std::unexpected(to_store_error(erased.error()));
    if (!*erased) return std::unexpected(no_such("Response", id, "response_id"));
    return true;
  };
  ask_store(context, writer, erase, [&context, writer, id](bool) {
    context.stored->abort_run(id);
    std::string body;
    JsonWriter(body).begin_object().member("id", id).member("object", "response").member("deleted", true).end_object();
    writer->respond({.body = std::move(body)});
  });
}

// One that was cancelled stays so; any other that has ended cannot be.
ApiResult<std::string> cancelled_response(stored::ObjectStore& store, const std::string& owner,
                                          const std::string& id, const Limits& limits) {
  KVASIR_TRY(const stored::Object response, find_response(store, owner, id));
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(response.json, limits));
  const auto background = find_member(document.root(), "background");
  if (!background || !background->is_bool() || !background->get_bool().value()) {
    return bad_request("only a response that was made with background: true can be cancelled", "response_id");
  }
  const std::string status(find_member(document.root(), "status")->get_string().value());
  if (status == "cancelled") return response.json;
  const auto cancelled = store.set_status(id, "cancelled", {}, false);
  if (!cancelled) return std::unexpected(to_store_error(cancelled.error()));
  if (!*cancelled) {
    return bad_request("the response has ended: its status is " + status, "response_id", "invalid_status");
  }
  KVASIR_TRY(stored::Object ended, find_response(store, owner, id));
  return std::move(ended.json);
}

void cancel_response(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto cancel = [owner = owner_of(*writer), id, limits = &context.limits](stored::ObjectStore& store) {
    return cancelled_response(store, owner, id, *limits);
  };
  ask_store(context, writer, cancel, [&context, writer, id](std::string json) {
    context.stored->abort_run(id);
    writer->respond({.body = std::move(json)});
  });
}

ApiResult<std::string> input_page(const std::string& items_body, const PageQuery& page, const Limits& limits) {
  KVASIR_TRY(const JsonDocument document, JsonDocument::parse(items_body, limits));
  std::vector<std::pair<std::string, std::string>> items;  // id, JSON
  const JsonArray whole = find_member(document.root(), "input")->get_array().value();
  for (const JsonElement item : whole) {
    const auto id = item.is_object() ? find_member(item.get_object().value(), "id") : std::nullopt;
    items.emplace_back(id && id->is_string() ? id->get_string().value() : std::string_view(),
                       simdjson::minify(item));
  }
  if (page.is_descending) std::ranges::reverse(items);
  std::size_t first = 0;
  if (!page.after.empty()) {
    const auto after = std::ranges::find(items, page.after, &std::pair<std::string, std::string>::first);
    if (after == items.end()) return std::unexpected(no_such("Item", page.after, "after"));
    first = static_cast<std::size_t>(after - items.begin()) + 1;
  }
  const std::size_t end = std::min(items.size(), first + static_cast<std::size_t>(page.limit));
  std::vector<ListedItem> listed;
  for (std::size_t i = first; i < end; ++i) listed.push_back({items[i].first, items[i].second});
  return page_json(listed, end < items.size());
}

void list_input_items(ApiContext& context, const Writer& writer, const std::string& id) {
  const auto page = read_page_query(writer->request(), 20, 100);
  if (!page) return writer->respond(error_response(page.error(), writer->request()));
  const auto list = [owner = owner_of(*writer), id, page = *page,
                     limits = &context.limits](stored::ObjectStore& store) -> ApiResult<std::string> {
    KVASIR_TRY(const stored::Object response, find_response(store, owner, id));
    KVASIR_TRY(const std::string items, input_of(store, response, *limits));
    return input_page(items, page, *limits);
  };
  ask_store(context, writer, list, [writer](std::string body) { writer->respond({.body = std::move(body)}); });
}

}  // namespace

extern const Endpoint kResponseCancel = {.method = "POST",
                                         .pattern = "/v1/responses/*/cancel",
                                         .meaning = "end a response that is made in the background",
                                         .answer = cancel_response};
extern const Endpoint kResponseInputItems = {
    .method = "GET",
    .pattern = "/v1/responses/*/input_items",
    .meaning = "what a stored response was made from; `limit`, `after`, `order`",
    .answer = list_input_items};
extern const Endpoint kStoredResponse = {.method = "GET",
                                         .pattern = "/v1/responses/*",
                                         .meaning = "a response that was stored; `stream`, `starting_after`",
                                         .answer = get_response};
extern const Endpoint kDeleteResponse = {.method = "DELETE",
                                         .pattern = "/v1/responses/*",
                                         .meaning = "forget a stored response",
                                         .answer = delete_response};

}  // namespace kvasir::server::api
