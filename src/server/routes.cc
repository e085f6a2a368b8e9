#include "server/routes.h"

#include <array>

#include "server/api/admin/endpoints.h"
#include "server/api/admin/operations.h"
#include "server/api/anthropic/endpoints.h"
#include "server/api/openai/endpoints.h"
#include "server/api/responses/endpoints.h"
#include "server/carriers/websocket/upgrade.h"
#include "server/page/page.h"

namespace kvasir::server {
namespace {

using Writer = std::shared_ptr<http::ResponseWriter>;
using Rest = std::string;

constexpr auto kEndpoints = std::to_array<Endpoint>({
    {"GET", "/", "a page to chat and to watch the server",
     [](api::ApiContext&, const Writer& e, const Rest&) { page::handle_page(e); }},
    {"POST", "/v1/chat/completions", "the next message of a conversation",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_chat_completions(c, e); }},
    {"POST", "/v1/completions", "what follows a text; with `echo` and `max_tokens` 0, what a text is worth",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_completions(c, e); }},
    {"POST", "/v1/responses", "the next message of a conversation, as OpenAI's newer clients ask",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_responses(c, e); }},
    {"POST", "/v1/messages", "the next message of a conversation, as Anthropic's clients ask",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_messages(c, e); }},
    {"POST", "/v1/messages/count_tokens", "how long its prompt would be",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_count_tokens(c, e); }},
    {"GET", "/v1/stream", "a WebSocket for requests to all of these POST paths, many at a time",
     [](api::ApiContext&, const Writer& e, const Rest&) { carriers::handle_no_upgrade(*e); }},
    {"POST", "/v1/generate", "what follows a text or a conversation: text and token ids, without an envelope",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_generate(c, e); }},
    {"POST", "/v1/embeddings", "texts as vectors of length 1",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_embeddings(c, e); }},
    {"POST", "/tokenize", "a text or a conversation as token ids",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_tokenize(c, e); }},
    {"POST", "/detokenize", "token ids as text",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_detokenize(c, e); }},
    {"GET", "/tokenizer_info", "special tokens and the chat template, for clients that render themselves",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_tokenizer_info(c, e); }},
    {"GET", "/v1/models", "the models there are: one",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_models(c, e); }},
    {"GET", "/v1/models/*", "a model by its name",
     [](api::ApiContext& c, const Writer& e, const Rest& name) { api::handle_model(c, e, name); }},
    {"GET", "/health", "as /health/ready, for clients that know no other",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_ready(c, e); }},
    {"GET", "/health/live", "200 as long as the process answers",
     [](api::ApiContext&, const Writer& e, const Rest&) { api::handle_live(e); }},
    {"GET", "/health/ready", "200 when requests are taken, 503 while the server drains",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_ready(c, e); }},
    {"GET", "/v1/metrics", "requests, tokens, latency, rate and batch size in one JSON object",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_summary(c, e); }},
    {"GET", "/v1/operations", "what runs now: requests, KV by owner and format, counts; what the page shows",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_operations(c, e); }},
    {"GET", "/metrics", "Prometheus text",
     [](api::ApiContext& c, const Writer& e, const Rest&) { api::handle_metrics(c, e); }},
});

}  // namespace

std::span<const Endpoint> endpoints() { return kEndpoints; }

std::vector<http::Route> make_routes(api::ApiContext& context) {
  std::vector<http::Route> routes;
  for (const Endpoint& endpoint : kEndpoints) {
    routes.push_back({endpoint.method, endpoint.pattern,
                      [&context, answer = endpoint.answer](const Writer& writer, const Rest& rest) {
                        answer(context, writer, rest);
                      }});
  }
  return routes;
}

}  // namespace kvasir::server
