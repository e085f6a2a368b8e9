// Items of earlier responses that a request names by their ids alone.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "server/api/api_context.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {

// The id of a response's item, from which the response's follows: "msg_" and 28 hex digits. Input items have the numbers
// from kFirstInputItem on.
inline constexpr std::size_t kFirstInputItem = 0x8000;
std::string item_id(std::string_view prefix, std::string_view response_id, std::size_t number);

// Calls `answer` with the request's body, in whose input stored items stand for the references to them: at once where
// there are none, else as a task of the writer. References to what is not there stay. An error of `answer` is the
// response.
using AnswerBody = std::function<ApiStatus(const std::shared_ptr<const std::string>& body)>;
void with_referenced_items(const ApiContext& context, const Writer& writer, AnswerBody answer);

}  // namespace kvasir::server::api
