#include "server/api_error.h"

#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"

namespace kvasir::server {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 408:
      return "timeout_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string_view anthropic_type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

void member_or_null(JsonWriter& json, std::string_view name, const std::string& text) {
  if (text.empty()) {
    json.member_null(name);
  } else {
    json.member(name, text);
  }
}

}  // namespace

std::unexpected<ApiError> bad_request(std::string message, std::string param, std::string code) {
  return std::unexpected(ApiError{400, std::move(message), std::move(param), std::move(code)});
}

std::unexpected<ApiError> not_supported(std::string_view param, std::string_view what) {
  return bad_request(fmt::format("{}: {} is not supported yet", param, what), std::string(param),
                     "unsupported_parameter");
}

ApiError to_api_error(Error error) {
  ApiError answer{500, std::move(error.message), std::move(error.param)};
  switch (error.kind) {
    case ErrorKind::kUsage:
      answer.status = 400;
      break;
    case ErrorKind::kUnmet:
      answer.status = 400;
      answer.code = "context_length_exceeded";
      break;
    case ErrorKind::kNotFound:
      answer.status = 404;
      break;
    case ErrorKind::kUnavailable:
    case ErrorKind::kMachine:
    case ErrorKind::kCancelled:
      answer.status = 503;
      answer.code = "overloaded";
      if (error.retry_after_s > 0) answer.retry_after_s = error.retry_after_s;
      break;
    case ErrorKind::kBadFile:
    case ErrorKind::kInternal:
      answer.code = "internal_error";
      break;
  }
  return answer;
}

ApiError beyond(const Limit& limit, std::int64_t actual, std::string param) {
  const std::string where = param.empty() ? "" : param + ": ";
  return {limit.status, fmt::format("{}{} {}, the limit is {} (--{})", where, actual, limit.what, limit.max, limit.flag),
          std::move(param), "limit_exceeded"};
}

ApiError beyond(const Limit& limit) {
  return {limit.status, fmt::format("more than {} {} (--{})", limit.max, limit.what, limit.flag), {}, "limit_exceeded"};
}

ErrorShape error_shape_of(std::string_view path) {
  if (path.starts_with("/api/")) return ErrorShape::kOllama;
  const bool is_messages = path == "/v1/messages" || path.starts_with("/v1/messages/");
  return is_messages ? ErrorShape::kAnthropic : ErrorShape::kOpenAi;
}

std::string error_json(const ApiError& error, ErrorShape shape) {
  std::string body;
  JsonWriter json(body);
  json.begin_object();
  if (shape == ErrorShape::kOllama) {
    json.member("error", error.message).end_object();
    return body;
  }
  if (shape == ErrorShape::kAnthropic) {
    json.member("type", "error").key("error").begin_object();
    json.member("type", anthropic_type_of(error.status)).member("message", error.message);
  } else {
    json.key("error").begin_object();
    json.member("message", error.message).member("type", type_of(error.status));
    member_or_null(json, "param", error.param);
    member_or_null(json, "code", error.code);
  }
  json.end_object().end_object();
  return body;
}

http::Response error_response(const ApiError& error, const http::Request& request) {
  http::Response response{.status = error.status, .body = error_json(error, error_shape_of(request.path))};
  if (error.status == 429 || error.status == 503) {
    response.headers.push_back({"Retry-After", std::to_string(error.retry_after_s)});
  }
  if (error.status == 401) response.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (error.status == 405) response.headers.push_back({"Allow", error.allow});
  return response;
}

}  // namespace kvasir::server
