// A request and a response as the handlers see them: whole, decoded, free of any HTTP library.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/auth/tenant.h"

namespace kvasir::server::http {

class BodySink;

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
  std::string query = {};  // behind the path's "?", as it came
  std::shared_ptr<BodySink> sink = {};  // has the body instead; null: `body` has it

  // The value of the first header of that name, case aside; null when there is none.
  const std::string* header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers = {};
  std::string body = {};
};

// The value of `name` in a query, percent-decoded; nothing when it is not there.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// "Not Found" for 404.
std::string_view reason_phrase(int status);

// "%2F" is "/". Malformed escapes stay as they are.
std::string percent_decoded(std::string_view text);

}  // namespace kvasir::server::http
