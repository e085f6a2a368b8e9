// POST /v1/responses/input_tokens
#include "base/json_writer.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/responses/responses_request.h"

namespace kvasir::server::api {
namespace {

ApiStatus count_input(const ApiContext& context, http::ResponseWriter& writer) {
  KVASIR_TRY(const ResponsesRequest request, read_request(context, writer, parse_responses_request));
  KVASIR_CHECKED(admit(context, writer, 0));
  KVASIR_TRY(const std::vector<TokenId> prompt, answerable_prompt(context, request));
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().member("object", "response.input_tokens");
  json.member("input_tokens", prompt.size()).end_object();
  writer.respond(std::move(response));
  return {};
}

}  // namespace

extern const Endpoint kInputTokens = {
    .method = "POST",
    .pattern = "/v1/responses/input_tokens",
    .meaning = "how long its prompt would be",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(count_input(context, *writer), *writer); },
    .fields =
        [] {
          FieldTable table = beside_common_fields(responses_fields());
          table.remark = "Fields: those of `/v1/responses`.";
          return table;
        },
};

}  // namespace kvasir::server::api
