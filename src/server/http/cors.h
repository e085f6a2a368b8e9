// Lets pages of a chosen origin read the answers (Fetch standard, CORS protocol).
#pragma once

#include <string>
#include <vector>

#include "server/http/message.h"

namespace kvasir::server::http {

// Thread safety: immutable.
class Cors {
 public:
  // `origin`: "*", one origin such as "https://chat.example", or empty for none.
  explicit Cors(std::string origin) : origin_(std::move(origin)) {}

  // The request comes from a page of the chosen origin.
  bool allows(const Request& request) const;
  // A browser's question before the real request; false as long as no origin is allowed.
  bool is_preflight(const Request& request) const;
  // The answer to a preflight for a path that takes these methods. Any request header is fine.
  Response preflight_response(const Request& request, const std::string& allowed_methods) const;
  // Adds the headers that an answer to this request carries.
  void add_headers(const Request& request, std::vector<Header>& headers) const;

 private:
  std::string origin_;
};

}  // namespace kvasir::server::http
