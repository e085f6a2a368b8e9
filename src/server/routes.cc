#include "server/routes.h"

#include "server/admin/endpoints.h"

namespace kvasir::server {

std::vector<Route> make_routes(ApiContext& context) {
  using ExchangePtr = std::shared_ptr<Exchange>;
  using Rest = const std::string&;
  return {
      {"POST", "/v1/chat/completions", [&](ExchangePtr e, Rest) { handle_chat_completions(context, e); }},
      {"POST", "/v1/completions", [&](ExchangePtr e, Rest) { handle_completions(context, e); }},
      {"POST", "/tokenize", [&](ExchangePtr e, Rest) { handle_tokenize(context, e); }},
      {"POST", "/detokenize", [&](ExchangePtr e, Rest) { handle_detokenize(context, e); }},
      {"GET", "/tokenizer_info", [&](ExchangePtr e, Rest) { handle_tokenizer_info(context, e); }},
      {"GET", "/v1/models", [&](ExchangePtr e, Rest) { handle_models(context, e); }},
      {"GET", "/v1/models/*", [&](ExchangePtr e, Rest name) { handle_model(context, e, name); }},
      {"GET", "/health/live", [](ExchangePtr e, Rest) { handle_live(e); }},
      {"GET", "/health/ready", [&](ExchangePtr e, Rest) { handle_ready(context, e); }},
      {"GET", "/metrics", [&](ExchangePtr e, Rest) { handle_metrics(context, e); }},
  };
}

}  // namespace kvasir::server
