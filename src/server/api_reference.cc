#include "server/api_reference.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "base/units.h"
#include "server/api/field_reference.h"
#include "server/api/generation_request.h"
#include "server/carriers/websocket/channel_message.h"
#include "server/limits.h"
#include "server/routes.h"

namespace kvasir::server {
namespace {

constexpr std::string_view kStreamReference =
    "## GET /v1/stream\n\n"
    "A WebSocket. Each message is one JSON object, and `id` is a string of the client's choice, of one "
    "request "
    "at a time:\n\n"
    "| from the client | |\n|---|---|\n"
    "| `{\"id\",\"path\",\"body\":{...}}` | what a POST of the body to the path asks |\n"
    "| `{\"id\",\"cancel\":true}` | ends it; of one that is over nothing happens |\n\n"
    "Of other members of a message `X-Kvasir-Warning` says that they are ignored: what a request asks "
    "stands in its\nbody.\n\n"
    "| from the server | |\n|---|---|\n"
    "| `{\"id\",\"status\",\"headers\":{...},\"body\":{...}}` | an answer in one piece, or a refusal; "
    "`id` is null where a message had none, or that of a request which is not over |\n"
    "| `{\"id\",\"status\":200,\"headers\":{...}}` | a stream (`\"stream\":true` in the body) begins |\n"
    "| `{\"id\",\"event\":{...}}` | one event of it |\n"
    "| `{\"id\",\"end\":\"complete\"}` | and its end; else \"failed\" or \"cancelled\" |\n\n"
    "The key comes with the handshake, as with any request. A browser's page must be of the server's own "
    "origin "
    "or one\nthat `--cors-origin` allows. A message may have as many bytes as a body: the connection closes "
    "with "
    "1009 after more.\n";

constexpr std::string_view kGrpcReference =
    "## gRPC\n\n"
    "With `--grpc-port` the server also speaks gRPC: `kvasir.v1.Kvasir`, described in "
    "`proto/kvasir/v1/kvasir.proto` and by\nreflection. `Generate` streams what `/v1/generate` makes, "
    "`Embed` "
    "is `/v1/embeddings`, `Rerank` `/v1/rerank`, `Tokenize` `/tokenize`, with the\nsame names, limits, keys (metadata "
    "`authorization`) and metrics. A refusal has the status that fits its own here, and as\ntrailing "
    "metadata "
    "`kvasir-error-bin`, a `kvasir.v1.Error`, and `retry-after`; bytes that are no message are refused as a\n"
    "body that is no JSON is, with INVALID_ARGUMENT. Cancelling a call frees what it holds. "
    "`grpc.health.v1.Health` and\nreflection need no key. What gRPC itself bounds has no such metadata: a "
    "message "
    "of more bytes than a body may have and\nmetadata of more than headers may have are RESOURCE_EXHAUSTED, "
    "and "
    "calls beyond `--max-channel-requests` on one\nconnection wait in the client. A connection that "
    "cancels more calls than `--max-grpc-resets`, or sends 1,000 frames\nthat carry nothing in 10 s, closes with "
    "GOAWAY and ENHANCE_YOUR_CALM.\n\n";

void append_limits(std::string& out) {
  constexpr Limits limits;
  out +=
      "## Limits\n\nEach has a flag of `kvasir serve`.\n\n| what | at most | else | flag "
      "|\n|---|---|---|---|\n";
  for (const auto member : kLimits) {
    const Limit& limit = limits.*member;
    const std::string answer = limit.status == 0 ? "the connection closes" : std::to_string(limit.status);
    out += fmt::format("| {} | {} | {} | `--{}` |\n", limit.what, limit.max, answer, limit.flag);
  }
  for (const TimeLimit& limit : kTimeLimits) {
    out += fmt::format("| {} | {} s | {} | `--{}` |\n", limit.what, (limits.*limit.time).count() / 1000,
                       limit.answer, limit.flag);
  }
  out += fmt::format(
      "\nFast enough is {} bytes a second. Headers and pauses may take up to an eighth longer, each "
      "connection its own "
      "part of that.\n",
      limits.min_bytes_per_s);
}

}  // namespace

std::string api_reference() {
  std::string out =
      "# The server's API\n\n"
      "Made from the tables that check requests: `kvasir serve --api-reference`. A field that is null counts "
      "as "
      "absent. A wish\nthat cannot be met is left out, and the header `X-Kvasir-Warning` names it, as it "
      "does of "
      "fields that no table has\nand of "
      "tool "
      "calls in earlier messages that the model's chat template does not show. Refused is only what\nwould "
      "give "
      "another answer than the one that was demanded. An answer's bound beyond the context is cut to what "
      "the\n"
      "prompt leaves, unless `--strict-limits` is given. What is refused gets\n"
      "`{\"error\":{\"message\",\"type\",\"param\",\"code\"}}` with a status of its own, below "
      "`/v1/messages`\n"
      "`{\"type\":\"error\",\"error\":{\"type\",\"message\"}}`.\n\n"
      "| | | |\n|---|---|---|\n";
  for (const api::Endpoint* const endpoint : endpoints()) {
    out += fmt::format("| {} | `{}` | {} |\n", endpoint->method, endpoint->pattern, endpoint->meaning);
  }
  out += "\n";
  api::append_fields(out, {.title = "## Common fields\n\nOf chats and completions",
                           .own = api::rows_of(api::generation_fields()),
                           .shared = {}});
  for (const api::Endpoint* const endpoint : endpoints()) {
    if (endpoint->method != "POST") continue;
    out += fmt::format("## {} {}\n\n", endpoint->method, endpoint->pattern);
    if (endpoint->fields != nullptr) api::append_fields(out, endpoint->fields());
  }
  out += kStreamReference;
  out += fmt::format("An `id` has up to {} bytes.\n\n", carriers::ChannelMessage::kMaxIdBytes);
  out += kGrpcReference;
  append_limits(out);
  return out;
}

}  // namespace kvasir::server
