// POST /v1/chat/completions
#include "server/api/chat_prompt.h"
#include "server/api/generation.h"
#include "server/openai/chat_fields.h"
#include "server/openai/chat_format.h"
#include "server/openai/endpoints.h"

namespace kvasir::server {
namespace {

ApiStatus start(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  KVASIR_TRY(const ChatRequest request, read_request(context, *exchange, parse_chat_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *exchange));
  ChatFormat::Options options = {.header = make_answer_header(context, request, "chatcmpl-"),
                                 .num_choices = request.sampling.n,
                                 .logprobs = request.logprobs,
                                 .prompt_logprobs = request.sampling.prompt_logprobs.has_value(),
                                 .tool_calls = tool_call_format(context, request),
                                 .tool_names = request.tool_names,
                                 .parallel_tool_calls = request.parallel_tool_calls};
  wanted.client_id = options.header.id;
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  auto format = std::make_unique<ChatFormat>(std::move(options), *context.engine.tokenizer(), context.ids);
  Generation::start(context, exchange, request, std::move(format), std::move(requests));
  return {};
}

}  // namespace

void handle_chat_completions(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  respond_unless(start(context, exchange), *exchange);
}

}  // namespace kvasir::server
