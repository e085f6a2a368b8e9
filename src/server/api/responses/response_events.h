// The events that build a response that is stored.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/api_error.h"
#include "server/http/event.h"
#include "server/limits.h"

namespace kvasir::server::api {

// Whether the response, as JSON, has ended.
bool has_ended(std::string_view response, const Limits& limits);

// All events of a response that has ended, as a stream would have sent them, but with each text as one delta. One that
// has not ended gives those before its first output. They are numbered from 0. Error (500): it is no response.
ApiResult<http::Events> events_of_response(std::string_view response, const Limits& limits);

}  // namespace kvasir::server::api
