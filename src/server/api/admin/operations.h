// What the server does now, for the page that shows it.
#pragma once

#include <memory>

#include "server/api/api_context.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// One JSON object: requests one by one, KV by owner and format, and the counts of which a watcher takes
// differences. Nothing of what anybody says is in it, and only operators see others' requests and what
// would tell of them (visible_stats.h).
void handle_operations(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);

}  // namespace kvasir::server::api
