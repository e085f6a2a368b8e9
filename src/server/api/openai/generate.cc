// POST /v1/generate
#include <utility>

#include "server/api/answer_start.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/openai/generate_format.h"
#include "server/api/openai/text_request.h"

namespace kvasir::server::api {
namespace {

ApiResult<Request> engine_request_of(const ApiContext& context, const TextRequest& request,
                                     http::ResponseWriter& writer, const std::string& id) {
  if (request.prompt) {
    return start_of_text(context, request, *request.prompt,
                         {.parse_special = request.parse_special, .add_special = request.add_special_tokens}, writer, id);
  }
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, writer));
  wanted.client_id = id;
  return wanted;
}

ApiStatus start_generate(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const TextRequest request, read_request(context, *writer, parse_text_request));
  KVASIR_TRY(Request wanted, engine_request_of(context, request, *writer, context.ids.next("gen-")));
  auto format = std::make_unique<GenerateFormat>(wanted.client_id);
  answer_one(context, writer, request, std::move(format), std::move(wanted));
  return {};
}

}  // namespace

extern const Endpoint kGenerate = {
    .method = "POST",
    .pattern = "/v1/generate",
    .meaning = "what follows a text or a conversation: text and token ids, without an envelope",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_generate(context, writer), *writer); },
    .fields = [] { return beside_common_fields(text_fields()); },
};

}  // namespace kvasir::server::api
