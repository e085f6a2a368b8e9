// POST /v1/responses/input_tokens
#include <memory>
#include <string>

#include "base/json_writer.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/responses/item_references.h"
#include "server/api/responses/responses_request.h"
#include "server/api/responses/stored_response.h"
#include "server/api/stored_things.h"

namespace kvasir::server::api {
namespace {

// `before`: as parse_continued_request()'s.
ApiStatus count_input(const ApiContext& context, const Writer& writer, const std::shared_ptr<const std::string>& body,
                      const std::string* before) {
  KVASIR_CHECKED(check_limits(context, *writer));
  Warnings warnings;
  KVASIR_TRY(const ResponsesRequest request,
             parse_continued_request(*body, context.limits, before, warnings));
  KVASIR_CHECKED(check_model(context, request.model));
  if (before == nullptr && !request.previous_response_id.empty()) {
    continue_conversation(context, writer, request.previous_response_id,
                          [&context, writer, body](const std::string& conversation) {
                            return count_input(context, writer, body, &conversation);
                          });
    return {};
  }
  add_warnings(warnings, *writer);
  KVASIR_CHECKED(admit(context, *writer, 0));
  KVASIR_TRY(const std::vector<TokenId> prompt, answerable_prompt(context, request));
  http::Response response;
  JsonWriter json(response.body);
  json.begin_object().member("object", "response.input_tokens");
  json.member("input_tokens", prompt.size()).end_object();
  writer->respond(std::move(response));
  return {};
}

}  // namespace

extern const Endpoint kInputTokens = {
    .method = "POST",
    .pattern = "/v1/responses/input_tokens",
    .meaning = "how long its prompt would be",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) {
      with_referenced_items(context, writer, [&context, writer](const std::shared_ptr<const std::string>& body) {
        return count_input(context, writer, body, nullptr);
      });
    },
    .fields =
        [] {
          FieldTable table = beside_common_fields(responses_fields());
          table.remark = "Fields: those of `/v1/responses`.";
          return table;
        },
};

}  // namespace kvasir::server::api
