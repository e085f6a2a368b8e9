#include "server/http/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nearest_name.h"
#include "base/printable.h"
#include "server/api_error.h"
#include "server/http/foreign_path.h"

namespace kvasir::server::http {
namespace {

// The text that the pattern's "*" stands for, empty without one; nothing when the path does not match.
std::optional<std::string_view> match(std::string_view pattern, std::string_view path) {
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return path == pattern ? std::optional(std::string_view()) : std::nullopt;
  const std::string_view before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (path.size() <= before.size() + behind.size()) return std::nullopt;
  if (!path.starts_with(before) || !path.ends_with(behind)) return std::nullopt;
  const std::string_view rest = path.substr(before.size(), path.size() - before.size() - behind.size());
  if (!behind.empty() && rest.contains('/')) return std::nullopt;
  return rest;
}

}  // namespace

bool Router::knows(std::string_view path) const {
  return std::ranges::any_of(routes_,
                             [&](const Route& route) { return match(route.pattern, path).has_value(); });
}

std::string Router::canonical_path(std::string_view path) const {
  if (!base_path_.empty() && path.starts_with(base_path_)) {
    const std::string_view rest = path.substr(base_path_.size());
    if (rest.empty()) return "/";
    if (rest.starts_with('/')) path = rest;
  }
  std::string whole;
  for (const char c : path) {
    if (c != '/' || !whole.ends_with('/')) whole += c;
  }
  std::string_view shorter = whole;  // also of a path whose "*" would take the slash
  if (shorter.size() > 1 && shorter.ends_with('/')) shorter.remove_suffix(1);
  if (knows(shorter)) return std::string(shorter);
  if (knows(whole)) return whole;
  const bool is_reranking = shorter == "/reranking" || shorter == "/v1/reranking";  // llama-server's word
  if (is_reranking && knows("/v1/rerank")) return "/v1/rerank";
  constexpr std::string_view kVersion = "/v1";
  if (shorter.starts_with("/v1/v1/")) return canonical_path(shorter.substr(kVersion.size()));
  // llama-server's other names, and base addresses that end in /v1 of clients for its and Ollama's paths. Two are
  // rather OpenAI's paths with a letter less.
  const std::string_view bare = shorter.starts_with("/v1/") ? shorter.substr(kVersion.size()) : std::string_view();
  if (!bare.empty() && bare != "/completion" && bare != "/embedding" && knows(bare)) return std::string(bare);
  std::string longer = std::string(kVersion).append(shorter);
  if (knows(longer)) return longer;
  // "/v1%2Fmodels" is the same path, for servers that decode first.
  const std::string decoded = percent_decoded(path);
  if (decoded == path || decoded.contains('%')) return whole;
  longer = canonical_path(decoded);
  return knows(longer) ? longer : whole;
}

// The hint for other servers' clients, the longest pattern that the path ends with, or the nearest.
std::string Router::hint(std::string_view path) const {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const auto did_you_mean = [](std::string_view pattern) {
    return pattern.empty() ? std::string() : fmt::format("did you mean {}?", pattern);
  };
  std::string_view foreign = hint_for_path(path);
  if (foreign.empty() && path.starts_with("/v1/")) foreign = hint_for_path(path.substr(3));
  if (foreign.starts_with('/') && knows(foreign)) return did_you_mean(foreign);
  if (!foreign.empty() && !foreign.starts_with('/')) return std::string(foreign);
  std::string_view nearest;
  std::vector<std::string_view> patterns;
  for (const Route& route : routes_) {
    const std::string_view pattern = route.pattern;
    patterns.push_back(pattern);
    // Azure has other paths before the same ends.
    const bool is_of_version = pattern.starts_with("/v1/");
    if (path.starts_with("/v1/") && !is_of_version) continue;
    const std::string_view end = is_of_version ? pattern.substr(3) : pattern;
    if (pattern.size() > 1 && path.ends_with(end) && pattern.size() > nearest.size()) nearest = pattern;
  }
  return did_you_mean(nearest.empty() ? nearest_name(path, patterns) : nearest);
}

std::string Router::allowed_methods(std::string_view path) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (!match(route.pattern, path)) continue;
    if (!methods.empty()) methods += ", ";
    methods += route.method == "GET" ? "GET, HEAD" : route.method;
  }
  return methods;
}

const Route* Router::find(const Request& request) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  const auto takes = [&](const Route& route) {
    return route.method == method && match(route.pattern, request.path);
  };
  const auto found = std::ranges::find_if(routes_, takes);
  return found == routes_.end() ? nullptr : &*found;
}

std::string_view Router::pattern_of(const Request& request) const {
  const Route* const route = find(request);
  return route == nullptr ? observe::kNoRoute : route->pattern;
}

std::string_view Router::api_of(const Request& request) const {
  const Route* const route = find(request);
  return route == nullptr ? std::string_view() : route->api;
}

bool Router::takes_file(const Request& request) const {
  const Route* const route = find(request);
  return route != nullptr && route->open_sink != nullptr;
}

ApiResult<std::shared_ptr<BodySink>> Router::open_sink(const Request& head, const auth::Tenant& tenant) const {
  return find(head)->open_sink(head, tenant);
}

void Router::handle(const std::shared_ptr<ResponseWriter>& writer) const {
  const Request& request = writer->request();
  if (const Route* const route = find(request)) {
    return route->handler(writer, percent_decoded(*match(route->pattern, request.path)));
  }
  const std::string shown = printable(request.path);
  std::string allowed = allowed_methods(request.path);
  if (allowed.empty()) {
    const std::string told = hint(request.path);
    return writer->respond(error_response(
        {404, fmt::format("no such path: {}{}{}", shown, told.empty() ? "" : "; ", told), {}, "path_not_found"}, request));
  }
  writer->respond(
      error_response({405,
                      fmt::format("{} takes {}, not {}", shown, allowed, printable(request.method)),
                      {},
                      "method_not_allowed",
                      std::move(allowed)},
                     request));
}

}  // namespace kvasir::server::http
