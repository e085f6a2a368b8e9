// Responses that are kept: written when they end, read to go on with a conversation.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/api/api_context.h"
#include "server/api/endpoint.h"
#include "server/api/responses/responses_format.h"
#include "server/stored/object_store.h"

namespace kvasir::server::api {

// A response that is being made.
struct StoredResponse {
  stored::Object object;  // its JSON is that of the beginning; pinned: it is made in the background
  std::shared_ptr<const std::string> input_items;  // of its own request: a JSON array; null once they are stored
};

// Whose things the request may see.
std::string owner_of(const http::ResponseWriter& writer);

// Errors (400): the input of the body cannot be read.
ApiResult<StoredResponse> begin_response(const ApiContext& context, const http::ResponseWriter& writer,
                                         const std::string& body, const ResponsesFormat::Options& options);
// Adds one that is made in the background, and gives its JSON.
ApiResult<std::string> add_response(stored::ObjectStore& store, const StoredResponse& response);
// These post to the store; of a background response the first end counts.
void mark_in_progress(const ApiContext& context, const StoredResponse& response);
void end_response(const ApiContext& context, const StoredResponse& response, std::string json);
// `error_body`: of the refusal that ended it.
void fail_response(const ApiContext& context, const StoredResponse& response, const std::string& error_body);
// Unfinished responses of an earlier process are failed.
Status fail_unfinished(stored::ObjectStore& store);

// The items of the conversation up to the response's last, as a body {"input":[...]}. Errors (400): the
// response or one before it is not there or did not end well; the conversation is longer than a body may be.
ApiResult<std::string> conversation_until(stored::ObjectStore& store, const std::string& owner,
                                          const std::string& id, const Limits& limits);
// Reads that conversation for the request, takes its memory, and calls `answer` with it as a task of the
// writer. An error of either, or of `answer`, is the response.
void continue_conversation(const ApiContext& context, const Writer& writer, const std::string& id,
                           std::function<ApiStatus(const std::string& conversation)> answer);
// Output and own input of a response, each a JSON array; none: it is not there.
ApiResult<std::vector<std::string>> items_of(stored::ObjectStore& store, const std::string& owner, const std::string& id,
                                             const Limits& limits);
// The items that a response was made from, with those of the conversation before as far as it is there.
ApiResult<std::string> input_of(stored::ObjectStore& store, const stored::Object& response, const Limits& limits);

}  // namespace kvasir::server::api
