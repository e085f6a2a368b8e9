// What operators alone may do.
#pragma once

#include "server/api_error.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// Error: 403. Where nobody is asked for a key, all are operators.
ApiStatus check_operator(const http::ResponseWriter& writer);

}  // namespace kvasir::server::api
