// Every path the server answers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_context.h"
#include "server/http/router.h"

namespace kvasir::server {

struct Endpoint {
  std::string_view method;
  std::string_view pattern;  // as Route's
  std::string_view meaning;  // for the API reference
  void (*answer)(api::ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                 const std::string& rest);
};

std::span<const Endpoint> endpoints();

// The context outlives the routes.
std::vector<http::Route> make_routes(api::ApiContext& context);

}  // namespace kvasir::server
