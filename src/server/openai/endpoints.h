// OpenAI's endpoints, and those that servers of its API have besides.
#pragma once

#include <memory>
#include <string>

#include "server/api/api_context.h"
#include "server/http/exchange.h"

namespace kvasir::server {

// Each answers the exchange, now or later.
void handle_chat_completions(ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_completions(ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_generate(ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_embeddings(ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_tokenize(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_detokenize(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_tokenizer_info(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_models(const ApiContext& context, const std::shared_ptr<Exchange>& exchange);
void handle_model(const ApiContext& context, const std::shared_ptr<Exchange>& exchange,
                  const std::string& name);

}  // namespace kvasir::server
