#include "server/anthropic/endpoints.h"

#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "server/anthropic/messages_format.h"
#include "server/anthropic/messages_request.h"
#include "server/api/chat_prompt.h"
#include "server/api/generation.h"

namespace kvasir::server {
namespace {

ApiStatus start(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, *exchange, parse_messages_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *exchange));
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
  Generation::start(context, exchange, request, std::move(format), std::move(requests));
  return {};
}

ApiStatus count(const ApiContext& context, Exchange& exchange) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, exchange, parse_count_tokens_request));
  KVASIR_CHECKED(admit(context, exchange, 0));
  KVASIR_TRY(const std::vector<TokenId> prompt, answerable_prompt(context, request));
  HttpResponse response;
  JsonWriter(response.body).begin_object().member("input_tokens", prompt.size()).end_object();
  exchange.respond(std::move(response));
  return {};
}

}  // namespace

void handle_messages(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  respond_unless(start(context, exchange), *exchange);
}

void handle_count_tokens(const ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  respond_unless(count(context, *exchange), *exchange);
}

}  // namespace kvasir::server
