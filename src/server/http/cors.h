// Lets pages of chosen origins read the answers (Fetch standard, CORS protocol).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "server/http/message.h"
#include "server/http/origin_pattern.h"

namespace kvasir::server::http {

// Thread safety: immutable.
class Cors {
 public:
  explicit Cors(std::vector<OriginPattern> origins) : origins_(std::move(origins)) {}

  // The request comes from a page of a chosen origin.
  bool allows(const Request& request) const;
  // A browser's question before the real request; false as long as no origin is allowed.
  bool is_preflight(const Request& request) const;
  // The answer to a preflight for a path that takes these methods. Any request header is fine.
  Response preflight_response(const Request& request, const std::string& allowed_methods) const;
  // Adds the headers that an answer to this request carries.
  void add_headers(const Request& request, std::vector<Header>& headers) const;

 private:
  bool allows_all() const;

  std::vector<OriginPattern> origins_;
};

}  // namespace kvasir::server::http
