#include "server/carriers/grpc/call_error.h"

#include <simdjson.h>

#include <utility>

#include "kvasir/v1/kvasir.pb.h"
#include "server/carriers/grpc/message_json.h"

namespace kvasir::server::carriers {
namespace {

grpc::StatusCode code_of(int http_status) {
  switch (http_status) {
    case 401:
      return grpc::StatusCode::UNAUTHENTICATED;
    case 403:
      return grpc::StatusCode::PERMISSION_DENIED;
    case 404:
      return grpc::StatusCode::NOT_FOUND;
    case 413:
    case 429:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case 503:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return http_status >= 500 ? grpc::StatusCode::INTERNAL : grpc::StatusCode::INVALID_ARGUMENT;
  }
}

v1::Error error_of(std::string_view body) {
  v1::Error error;
  simdjson::dom::parser parser;
  simdjson::dom::element object;
  if (parser.parse(body.data(), body.size())["error"].get(object) == simdjson::SUCCESS) {
    read_message(simdjson::minify(object), error);
  }
  return error;
}

CallError call_error(grpc::StatusCode code, const v1::Error& error) {
  return {.status = grpc::Status(code, error.message()), .details = error.SerializeAsString()};
}

}  // namespace

CallError call_error(int http_status, std::string_view body) {
  return call_error(code_of(http_status), error_of(body));
}

CallError call_error_of_failure(std::string_view data) {
  const v1::Error error = error_of(data);
  return call_error(code_of(error.type() == "overloaded_error" ? 503 : 500), error);
}

}  // namespace kvasir::server::carriers
