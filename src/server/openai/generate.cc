// POST /v1/generate
#include <fmt/format.h>

#include "server/api/generation.h"
#include "server/openai/completion_request.h"
#include "server/openai/endpoints.h"
#include "server/openai/generate_format.h"

namespace kvasir::server {
namespace {

ApiStatus check_single(const CompletionRequest& request) {
  if (request.prompts.size() != 1) {
    return bad_request(fmt::format("prompt: {} prompts, this endpoint takes one", request.prompts.size()),
                       "prompt");
  }
  if (request.sampling.n != 1) {
    return bad_request(fmt::format("n must be 1, got {}", request.sampling.n), "n");
  }
  if (request.echo) return not_supported("echo", "true");
  return {};
}

ApiStatus start(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  KVASIR_TRY(const CompletionRequest request, read_request(context, *exchange, parse_completion_request));
  KVASIR_CHECKED(check_single(request));
  KVASIR_TRY(std::vector<TokenId> ids, encode_prompt(request.prompts.front(), context.engine,
                                                     {.parse_special = request.parse_special,
                                                      .add_special = request.add_special_tokens},
                                                     "prompt"));
  Request wanted = engine_request(request, exchange->request().tenant, context.kv, std::move(ids));
  KVASIR_CHECKED(check_context(wanted, context.engine.model_info().max_model_len_tokens, "prompt"));
  wanted.client_id = context.ids.next("gen-");
  auto format = std::make_unique<GenerateFormat>(wanted.client_id);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, exchange, request, std::move(format), std::move(requests));
  return {};
}

}  // namespace

void handle_generate(ApiContext& context, const std::shared_ptr<Exchange>& exchange) {
  respond_unless(start(context, exchange), *exchange);
}

}  // namespace kvasir::server
