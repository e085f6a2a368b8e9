#include "server/routes.h"

#include <array>

#include "server/api/model_dispatch.h"

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

void answer_directly(api::ApiContext& context, const api::Endpoint& endpoint, const api::Writer& writer,
                     const std::string& rest) {
  endpoint.answer(context, writer, rest);
}

}  // namespace

std::span<const api::Endpoint* const> endpoints() { return kEndpoints; }

std::vector<http::Route> make_routes(api::ApiContext& context) {
  std::vector<http::Route> routes;
  for (const api::Endpoint* const endpoint : kEndpoints) {
    const auto answer = api::names_a_model(*endpoint) ? api::answer_with_model : answer_directly;
    routes.push_back({endpoint->method, endpoint->pattern,
                      [&context, endpoint, answer](const api::Writer& writer, const std::string& rest) {
                        answer(context, *endpoint, writer, rest);
                      },
                      endpoint->api});
    if (endpoint->open_sink == nullptr) continue;
    routes.back().open_sink = [&context, endpoint](const http::Request& head, const auth::Tenant& tenant) {
      return endpoint->open_sink(context, head, tenant);
    };
  }
  return routes;
}

std::vector<http::Route> make_ollama_routes(api::ApiContext& context) {
  std::vector<http::Route> routes = make_routes(context);
  for (http::Route& route : routes) {
    if (route.pattern != "/") continue;
    route.handler = [](const api::Writer& writer, const std::string&) {
      writer->respond({.content_type = "text/plain; charset=utf-8", .body = "Ollama is running"});
    };
  }
  return routes;
}

}  // namespace kvasir::server
