// Refusals: what is wrong with which field, and how that is said.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "kvasir/result.h"
#include "server/http/message.h"
#include "server/limits.h"

namespace kvasir::server {

struct ApiError {
  int status = 500;
  std::string message;
  std::string param = {};  // the request field at fault; empty becomes null
  std::string code = {};   // for programs, e.g. "model_not_found"; empty becomes null
  std::string allow = {};  // the methods of a 405
  int retry_after_s = 2;   // of a 429 or 503: 1 to 60, or OpenAI's SDKs do not wait for it
};

template <class T>
using ApiResult = std::expected<T, ApiError>;
using ApiStatus = ApiResult<void>;

// A 400 that names the field at fault.
std::unexpected<ApiError> bad_request(std::string message, std::string param = {}, std::string code = {});
// A field that is understood but whose promise this server cannot keep yet: refused, never ignored.
std::unexpected<ApiError> not_supported(std::string_view param, std::string_view what);
// An error of the engine or the template as an answer: kUsage and kUnmet 400, kUnavailable and kMachine 503.
ApiError to_api_error(Error error);
// The refusal of a limit.
ApiError beyond(const Limit& limit, std::int64_t actual, std::string param = {});
// Where it is not known how much there is.
ApiError beyond(const Limit& limit);

// How an error is said to the clients of a path.
enum class ErrorShape : std::uint8_t {
  kOpenAi,     // {"error":{"message","type","param","code"}}
  kAnthropic,  // {"type":"error","error":{"type","message"}}
  kOllama,     // {"error":"message"}
};
ErrorShape error_shape_of(std::string_view path);

std::string error_json(const ApiError& error, ErrorShape shape);
// To a request. With Retry-After on 429 and 503 and Allow on 405.
http::Response error_response(const ApiError& error, const http::Request& request);

}  // namespace kvasir::server
