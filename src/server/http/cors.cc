#include "server/http/cors.h"

namespace kvasir::server::http {
namespace {

constexpr char kReadableHeaders[] =
    "X-Request-Id, Request-Id, X-Client-Request-Id, OpenAI-Processing-Ms, Retry-After, X-Kvasir-Warning, "
    "X-RateLimit-Limit-Requests, X-RateLimit-Remaining-Requests, X-RateLimit-Reset-Requests, "
    "X-RateLimit-Limit-Tokens, X-RateLimit-Remaining-Tokens, X-RateLimit-Reset-Tokens";

}  // namespace

bool Cors::allows(const Request& request) const {
  if (origin_.empty()) return false;
  const std::string* origin = request.header("Origin");
  return origin != nullptr && (origin_ == "*" || *origin == origin_);
}

bool Cors::is_preflight(const Request& request) const {
  return !origin_.empty() && request.method == "OPTIONS" && request.header("Origin") != nullptr &&
         request.header("Access-Control-Request-Method") != nullptr;
}

Response Cors::preflight_response(const Request& request, const std::string& allowed_methods) const {
  Response response{.status = 204, .content_type = ""};
  response.headers = {{"Access-Control-Allow-Methods", allowed_methods}, {"Access-Control-Max-Age", "600"}};
  if (const std::string* wanted = request.header("Access-Control-Request-Headers")) {
    response.headers.push_back({"Access-Control-Allow-Headers", *wanted});
  }
  return response;
}

void Cors::add_headers(const Request& request, std::vector<Header>& headers) const {
  if (!origin_.empty() && origin_ != "*") headers.push_back({"Vary", "Origin"});
  if (!allows(request)) return;
  headers.push_back({"Access-Control-Allow-Origin", origin_});
  headers.push_back({"Access-Control-Expose-Headers", kReadableHeaders});
}

}  // namespace kvasir::server::http
