// OpenAI's endpoints, and those that servers of its API have besides.
#pragma once

#include <memory>
#include <string>

#include "server/api/api_context.h"
#include "server/http/response_writer.h"

namespace kvasir::server::api {

// Each answers the request, now or later.
void handle_chat_completions(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_completions(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_generate(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_embeddings(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_tokenize(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_detokenize(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_tokenizer_info(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_models(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer);
void handle_model(const ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                  const std::string& name);

}  // namespace kvasir::server::api
