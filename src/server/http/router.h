// Which handler answers which method and path.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/body_sink.h"
#include "server/http/response_writer.h"

namespace kvasir::server::http {

// `rest`: what the "*" of a pattern matched, percent-decoded; else empty.
using Handler = std::function<void(std::shared_ptr<ResponseWriter> writer, const std::string& rest)>;
// Opens what takes the body of a request. Errors refuse it before its body comes.
using OpenSink =
    std::function<ApiResult<std::shared_ptr<BodySink>>(const Request& head, const auth::Tenant& tenant)>;

struct Route {
  std::string_view method;
  std::string_view pattern;  // a path; "*" is one segment, and at the end any number
  Handler handler;
  std::string_view api = {};  // the name of its API in logs
  OpenSink open_sink = nullptr;  // null: its body is no file, which has a limit of its own
};

// Unknown paths get 404, known ones with another method 405 with Allow; HEAD is answered as GET (the
// connection leaves the body out).
//
// Thread safety: immutable.
class Router {
 public:
  // Paths may begin with `base_path` ("/llm"), for a proxy that passes it on; empty: none.
  explicit Router(std::vector<Route> routes, std::string base_path = {})
      : routes_(std::move(routes)), base_path_(std::move(base_path)) {}

  // The path as a route has it: without the base path, doubled slashes and a last slash, with the "/v1" that
  // a client left out, and without one that it gave twice. A path that no route takes keeps its last slash.
  std::string canonical_path(std::string_view path) const;

  void handle(const std::shared_ptr<ResponseWriter>& writer) const;
  // The pattern of the route that takes the request; kNoRoute when none does.
  std::string_view pattern_of(const Request& request) const;
  // The name of that route's API; empty when none takes the request.
  std::string_view api_of(const Request& request) const;
  // Whether the request's body is a file.
  bool takes_file(const Request& request) const;
  // Requires: it is.
  ApiResult<std::shared_ptr<BodySink>> open_sink(const Request& head, const auth::Tenant& tenant) const;
  // The methods a path takes, "GET, HEAD"; empty for an unknown path.
  std::string allowed_methods(std::string_view path) const;

 private:
  const Route* find(const Request& request) const;
  bool knows(std::string_view path) const;
  // For a path that no route takes; empty: none comes near.
  std::string hint(std::string_view path) const;

  std::vector<Route> routes_;
  std::string base_path_;
};

}  // namespace kvasir::server::http
