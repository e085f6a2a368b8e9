#include "server/api/answer_start.h"

#include <utility>
#include <vector>

#include "server/api/adapter_choice.h"
#include "server/api/chat_prompt.h"
#include "server/api/generation.h"
#include "server/api/tool_calls/tool_guide.h"

namespace kvasir::server::api {

ApiResult<ChatStart> start_of_chat(const ApiContext& context, const ChatRequest& request, http::ResponseWriter& writer,
                                   std::string client_id, std::string_view prompt_field) {
  ChatStart start;
  KVASIR_TRY(start.wanted, chat_engine_request(context, request, writer, prompt_field));
  start.wanted.client_id = std::move(client_id);
  KVASIR_TRY(start.tool_calls, guided_tool_calls(context, request, start.wanted, writer));
  return start;
}

ApiResult<Request> start_of_text(const ApiContext& context, const GenerationRequest& request, const PlainPrompt& prompt,
                                 text::EncodeOptions options, http::ResponseWriter& writer, std::string client_id) {
  KVASIR_TRY(std::vector<TokenId> ids, encode_prompt(prompt, context.engine, options, EmptyText::kBegins));
  return start_of_tokens(context, request, std::move(ids), prompt.name, writer, std::move(client_id));
}

ApiResult<Request> start_of_tokens(const ApiContext& context, const GenerationRequest& request,
                                   std::vector<TokenId> prompt, std::string_view prompt_field,
                                   http::ResponseWriter& writer, std::string client_id) {
  Request wanted = engine_request(request, writer.request().tenant, context.kv, std::move(prompt));
  KVASIR_CHECKED(choose_adapter(context, request, wanted));
  Warnings warnings;
  KVASIR_CHECKED(fit_context(context, wanted, prompt_field, warnings));
  add_warnings(warnings, writer);
  wanted.client_id = std::move(client_id);
  return wanted;
}

void answer_one(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                const GenerationRequest& asked, std::unique_ptr<AnswerFormat> format, Request wanted) {
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, asked, std::move(format), std::move(requests));
}

}  // namespace kvasir::server::api
