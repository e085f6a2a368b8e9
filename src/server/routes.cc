#include "server/routes.h"

#include <array>

#include "server/admin/endpoints.h"
#include "server/admin/operations.h"
#include "server/anthropic/endpoints.h"
#include "server/openai/endpoints.h"
#include "server/page/page.h"
#include "server/responses/endpoints.h"
#include "server/websocket/upgrade.h"

namespace kvasir::server {
namespace {

using ExchangePtr = std::shared_ptr<Exchange>;
using Rest = std::string;

constexpr auto kEndpoints = std::to_array<Endpoint>({
    {"GET", "/", "a page to chat and to watch the server",
     [](ApiContext&, const ExchangePtr& e, const Rest&) { handle_page(e); }},
    {"POST", "/v1/chat/completions", "the next message of a conversation",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_chat_completions(c, e); }},
    {"POST", "/v1/completions", "what follows a text; with `echo` and `max_tokens` 0, what a text is worth",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_completions(c, e); }},
    {"POST", "/v1/responses", "the next message of a conversation, as OpenAI's newer clients ask",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_responses(c, e); }},
    {"POST", "/v1/messages", "the next message of a conversation, as Anthropic's clients ask",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_messages(c, e); }},
    {"POST", "/v1/messages/count_tokens", "how long its prompt would be",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_count_tokens(c, e); }},
    {"GET", "/v1/stream", "a WebSocket for requests to all of these POST paths, many at a time",
     [](ApiContext&, const ExchangePtr& e, const Rest&) { handle_no_upgrade(*e); }},
    {"POST", "/v1/generate", "what follows a text or a conversation: text and token ids, without an envelope",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_generate(c, e); }},
    {"POST", "/v1/embeddings", "texts as vectors of length 1",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_embeddings(c, e); }},
    {"POST", "/tokenize", "a text or a conversation as token ids",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_tokenize(c, e); }},
    {"POST", "/detokenize", "token ids as text",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_detokenize(c, e); }},
    {"GET", "/tokenizer_info", "special tokens and the chat template, for clients that render themselves",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_tokenizer_info(c, e); }},
    {"GET", "/v1/models", "the models there are: one",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_models(c, e); }},
    {"GET", "/v1/models/*", "a model by its name",
     [](ApiContext& c, const ExchangePtr& e, const Rest& name) { handle_model(c, e, name); }},
    {"GET", "/health", "as /health/ready, for clients that know no other",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_ready(c, e); }},
    {"GET", "/health/live", "200 as long as the process answers",
     [](ApiContext&, const ExchangePtr& e, const Rest&) { handle_live(e); }},
    {"GET", "/health/ready", "200 when requests are taken, 503 while the server drains",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_ready(c, e); }},
    {"GET", "/v1/metrics", "requests, tokens, latency, rate and batch size in one JSON object",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_summary(c, e); }},
    {"GET", "/v1/operations", "what runs now: requests, KV by owner and format, counts; what the page shows",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_operations(c, e); }},
    {"GET", "/metrics", "Prometheus text",
     [](ApiContext& c, const ExchangePtr& e, const Rest&) { handle_metrics(c, e); }},
});

}  // namespace

std::span<const Endpoint> endpoints() { return kEndpoints; }

std::vector<Route> make_routes(ApiContext& context) {
  std::vector<Route> routes;
  for (const Endpoint& endpoint : kEndpoints) {
    routes.push_back({endpoint.method, endpoint.pattern,
                      [&context, answer = endpoint.answer](const ExchangePtr& exchange, const Rest& rest) {
                        answer(context, exchange, rest);
                      }});
  }
  return routes;
}

}  // namespace kvasir::server
