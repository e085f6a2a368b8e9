#include "server/api/list_page.h"

#include <fmt/format.h>

#include <charconv>

#include "base/json_writer.h"
#include "base/printable.h"

namespace kvasir::server::api {

ApiResult<PageQuery> read_page_query(const http::Request& request, std::int64_t default_limit,
                                     std::int64_t max_limit) {
  PageQuery page{.limit = default_limit};
  if (const auto limit = http::query_value(request.query, "limit"); limit && !limit->empty()) {
    const char* const end = limit->data() + limit->size();
    const auto [rest, error] = std::from_chars(limit->data(), end, page.limit);
    if (error != std::errc() || rest != end || page.limit < 1 || page.limit > max_limit) {
      return bad_request(fmt::format("limit must be a whole number from 1 to {}, got '{}'", max_limit,
                                     printable(std::string_view(*limit).substr(0, 32))),
                         "limit");
    }
  }
  if (const auto order = http::query_value(request.query, "order"); order && !order->empty()) {
    page.is_descending = *order == "desc";
    if (!page.is_descending && *order != "asc") {
      return bad_request(
          fmt::format("order must be asc or desc, got '{}'", printable(std::string_view(*order).substr(0, 32))),
          "order");
    }
  }
  page.after = http::query_value(request.query, "after").value_or("");
  return page;
}

std::string page_json(std::span<const ListedItem> items, bool has_more) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().member("object", "list").key("data").begin_array();
  for (const ListedItem& item : items) json.raw(item.json);
  json.end_array();
  if (items.empty()) {
    json.member_null("first_id").member_null("last_id");
  } else {
    json.member("first_id", items.front().id).member("last_id", items.back().id);
  }
  json.member("has_more", has_more).end_object();
  return body;
}

}  // namespace kvasir::server::api
