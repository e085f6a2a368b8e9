// Pages of a list, as OpenAI's clients ask for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/api_error.h"
#include "server/http/message.h"

namespace kvasir::server::api {

struct PageQuery {
  std::int64_t limit = 20;
  std::string after;  // the id before the page; empty: from the beginning
  bool is_descending = true;
};

// ?limit=&after=&order=asc|desc. Errors (400): a limit beyond 1 to `max_limit`, another order.
ApiResult<PageQuery> read_page_query(const http::Request& request, std::int64_t default_limit,
                                     std::int64_t max_limit);

struct ListedItem {
  std::string_view id;
  std::string_view json;
};
std::string page_json(std::span<const ListedItem> items, bool has_more);

}  // namespace kvasir::server::api
