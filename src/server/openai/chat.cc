// POST /v1/chat/completions
#include "server/openai/api_context.h"
#include "server/openai/chat_format.h"
#include "server/openai/chat_prompt.h"
#include "server/openai/chat_request.h"
#include "server/openai/generation.h"
#include "server/openai/tool_calls.h"

namespace kvasir::server {
namespace {

ToolCallFormat tool_call_format(const ApiContext& context) {
  return tool_call_format_of(context.engine.chat_template()->source());
}

ApiResult<Request> prepare(const ApiContext& context, const ChatRequest& request, const Tenant& tenant) {
  const Engine& engine = context.engine;
  if (engine.tokenizer() == nullptr) {
    return bad_request("the model file has no tokenizer: only /v1/completions with token ids works",
                       "messages");
  }
  if (engine.chat_template() == nullptr) {
    return bad_request(
        "the model has no chat template: use /v1/completions, or start the server with --chat-template FILE",
        "messages", "no_chat_template");
  }
  if (request.may_call_tools() && tool_call_format(context) == ToolCallFormat::kNone) {
    return bad_request(
        "the model's chat template shows no tools, or has calls in a form that is not known here: only "
        "tool_choice "
        "\"none\" works",
        "tools", "unsupported_parameter");
  }
  KVASIR_TRY(std::vector<TokenId> prompt, chat_prompt(request, *engine.chat_template(), *engine.tokenizer()));
  Request wanted = engine_request(request, tenant, context.kv, std::move(prompt));
  KVASIR_CHECKED(check_context(wanted, engine.model_info().max_model_len_tokens, "messages"));
  return wanted;
}

ApiStatus start(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  KVASIR_TRY(const ChatRequest request, read_request(context, *exchange, parse_chat_request));
  KVASIR_TRY(Request wanted, prepare(context, request, exchange->request().tenant));
  ChatFormat::Options options = {.header = make_answer_header(context, request, "chatcmpl-"),
                                 .num_choices = request.sampling.n,
                                 .logprobs = request.logprobs,
                                 .prompt_logprobs = request.sampling.prompt_logprobs.has_value(),
                                 .tool_calls = {},
                                 .tool_names = request.tool_names,
                                 .parallel_tool_calls = request.parallel_tool_calls};
  if (request.may_call_tools()) options.tool_calls = tool_call_format(context);
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
