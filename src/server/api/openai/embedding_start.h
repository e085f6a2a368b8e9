// The engine's requests for embeddings, in whichever protocol.
#pragma once

#include <string>
#include <vector>

#include "server/api/api_context.h"
#include "server/api/openai/embedding_request.h"

namespace kvasir::server::api {

// One for each input, in their order, with the model's prompt before it where one is wished. With `truncates` an input
// beyond the context is cut at its end, which a warning says. Errors (400): what the model cannot give, an input that is
// empty or beyond the context.
ApiResult<std::vector<Request>> embedding_requests(const ApiContext& context, EmbeddingRequest asked,
                                                   http::ResponseWriter& writer, const std::string& id,
                                                   bool truncates = false);

}  // namespace kvasir::server::api
