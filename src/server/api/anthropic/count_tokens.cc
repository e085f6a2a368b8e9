// POST /v1/messages/count_tokens
#include "base/json_writer.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {
namespace {

ApiStatus count(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, writer, parse_count_tokens_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const std::vector<TokenId> prompt, answerable_prompt(context, request));
  http::Response response;
  JsonWriter(response.body).begin_object().member("input_tokens", prompt.size()).end_object();
  writer.respond(std::move(response));
  return {};
}

}  // namespace

extern const Endpoint kCountTokens = {
    .method = "POST",
    .pattern = "/v1/messages/count_tokens",
    .meaning = "how long its prompt would be",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(count(context, *writer), *writer); },
    .api = "anthropic",
    .fields =
        [] {
          FieldTable table = beside_common_fields(messages_fields());
          table.remark = "Fields: those of `/v1/messages`; `max_tokens` may be absent.";
          return table;
        },
};

}  // namespace kvasir::server::api
