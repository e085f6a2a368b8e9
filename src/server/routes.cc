#include "server/routes.h"

#include <array>

#define KVASIR_ENDPOINT(room, name) \
  namespace kvasir::server::room {  \
  extern const api::Endpoint name;  \
  }
#include "server/endpoints.def"
#undef KVASIR_ENDPOINT

namespace kvasir::server {
namespace {

constexpr auto kEndpoints = std::to_array<const api::Endpoint*>({
#define KVASIR_ENDPOINT(room, name) &room::name,
#include "server/endpoints.def"
#undef KVASIR_ENDPOINT
});

}  // namespace

std::span<const api::Endpoint* const> endpoints() { return kEndpoints; }

std::vector<http::Route> make_routes(api::ApiContext& context) {
  std::vector<http::Route> routes;
  for (const api::Endpoint* const endpoint : kEndpoints) {
    routes.push_back({endpoint->method, endpoint->pattern,
                      [&context, endpoint](const api::Writer& writer, const std::string& rest) {
                        endpoint->answer(context, writer, rest);
                      }});
    if (endpoint->open_sink == nullptr) continue;
    routes.back().open_sink = [&context, endpoint](const http::Request& head, const auth::Tenant& tenant) {
      return endpoint->open_sink(context, head, tenant);
    };
  }
  return routes;
}

}  // namespace kvasir::server
