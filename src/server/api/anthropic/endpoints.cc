#include "server/api/anthropic/endpoints.h"

#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/api/anthropic/messages_format.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/chat_prompt.h"
#include "server/api/generation.h"

namespace kvasir::server::api {
namespace {

ApiStatus start(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, *writer, parse_messages_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer));
  wanted.client_id = context.ids.next("msg_");
  auto format = std::make_unique<MessagesFormat>(
      MessagesFormat::Options{.id = wanted.client_id,
                              .model = context.model_name,
                              .tool_calls = tool_call_format(context, request),
                              .tool_names = request.tool_names,
                              .parallel_tool_calls = request.parallel_tool_calls},
      context.ids);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, request, std::move(format), std::move(requests));
  return {};
}

ApiStatus count(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, writer, parse_count_tokens_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const std::vector<TokenId> prompt, answerable_prompt(context, request));
  http::Response response;
  JsonWriter(response.body).begin_object().member("input_tokens", prompt.size()).end_object();
  writer.respond(std::move(response));
  return {};
}

}  // namespace

void handle_messages(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  respond_unless(start(context, writer), *writer);
}

void handle_count_tokens(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  respond_unless(count(context, *writer), *writer);
}

}  // namespace kvasir::server::api
