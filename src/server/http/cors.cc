#include "server/http/cors.h"

#include <algorithm>

namespace kvasir::server::http {
namespace {

constexpr char kReadableHeaders[] =
    "X-Request-Id, Request-Id, X-Client-Request-Id, OpenAI-Processing-Ms, Retry-After, X-Kvasir-Warning, "
    "X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, X-RateLimit-Reset-Requests, "
    "X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, X-RateLimit-Reset-Tokens";

}  // namespace

bool Cors::allows(const Request& request) const {
  const std::string* origin = request.header("Origin");
  return origin != nullptr && std::ranges::any_of(origins_, [&](const OriginPattern& pattern) {
           return pattern.matches(*origin);
         });
}

bool Cors::allows_all() const { return std::ranges::any_of(origins_, &OriginPattern::matches_all); }

bool Cors::is_preflight(const Request& request) const {
  return !origins_.empty() && request.method == "OPTIONS" && request.header("Origin") != nullptr &&
         request.header("Access-Control-Request-Method") != nullptr;
}

Response Cors::preflight_response(const Request& request, const std::string& allowed_methods) const {
  Response response{.status = 204, .content_type = ""};
  response.headers = {{"Access-Control-Allow-Methods", allowed_methods}, {"Access-Control-Max-Age", "600"}};
  if (const std::string* wanted = request.header("Access-Control-Request-Headers")) {
    response.headers.push_back({"Access-Control-Allow-Headers", *wanted});
  }
  // Browsers ask so before a page of another network reaches this machine.
  if (request.header("Access-Control-Request-Private-Network") != nullptr && allows(request)) {
    response.headers.push_back({"Access-Control-Allow-Private-Network", "true"});
  }
  return response;
}

void Cors::add_headers(const Request& request, std::vector<Header>& headers) const {
  const bool is_open = allows_all();
  if (!origins_.empty() && !is_open) headers.push_back({"Vary", "Origin"});
  if (!allows(request)) return;
  headers.push_back({"Access-Control-Allow-Origin", is_open ? "*" : *request.header("Origin")});
  headers.push_back({"Access-Control-Expose-Headers", kReadableHeaders});
}

}  // namespace kvasir::server::http
