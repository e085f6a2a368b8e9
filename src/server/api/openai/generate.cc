// POST /v1/generate
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/openai/generate_format.h"
#include "server/api/openai/text_request.h"

namespace kvasir::server::api {
namespace {

ApiResult<Request> engine_request_of(const ApiContext& context, const TextRequest& request,
                                     http::ResponseWriter& writer) {
  if (!request.prompt) return chat_engine_request(context, request, writer);
  KVASIR_TRY(std::vector<TokenId> ids, encode_prompt(*request.prompt, context.engine,
                                                     {.parse_special = request.parse_special,
                                                      .add_special = request.add_special_tokens},
                                                     EmptyText::kBegins));
  Request wanted = engine_request(request, writer.request().tenant, context.kv, std::move(ids));
  Warnings warnings;
  KVASIR_CHECKED(fit_context(context, wanted, request.prompt->name, warnings));
  add_warnings(warnings, writer);
  return wanted;
}

ApiStatus start_generate(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const TextRequest request, read_request(context, *writer, parse_text_request));
  KVASIR_TRY(Request wanted, engine_request_of(context, request, *writer));
  wanted.client_id = context.ids.next("gen-");
  auto format = std::make_unique<GenerateFormat>(wanted.client_id);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, request, std::move(format), std::move(requests));
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
