// A request and a response as the handlers see them: whole, decoded, free of any HTTP library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/auth/tenant.h"

namespace kvasir::server::http {

struct Header {
  std::string name;
  std::string value;
};

struct Request {
  std::string method;
  std::string path;  // the target without its query, percent-encoding left as it came
  std::vector<Header> headers;
  std::string body;
  auth::Tenant tenant;  // whose API key came with it

  // The value of the first header of that name, case aside; null when there is none.
  const std::string* header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
  std::string body = {};
};

// "Not Found" for 404.
std::string_view reason_phrase(int status);

// "%2F" is "/". Malformed escapes stay as they are.
std::string percent_decoded(std::string_view text);

}  // namespace kvasir::server::http
