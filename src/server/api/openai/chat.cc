// POST /v1/chat/completions
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/openai/chat_fields.h"
#include "server/api/openai/chat_format.h"
#include "server/api/tool_calls/tool_guide.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_chat(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const ChatRequest request, read_request(context, *writer, parse_chat_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer));
  KVASIR_TRY(ToolCallReading tool_calls, guided_tool_calls(context, request, wanted, *writer));
  ChatFormat::Options options = {.header = make_answer_header(context, request, "chatcmpl-"),
                                 .num_choices = request.sampling.n,
                                 .logprobs = request.logprobs,
                                 .prompt_logprobs = request.sampling.prompt_logprobs.has_value(),
                                 .tool_calls = std::move(tool_calls),
                                 .tool_origins = request.tool_origins};
  wanted.client_id = options.header.id;
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  auto format = std::make_unique<ChatFormat>(std::move(options), *context.engine.tokenizer(), context.ids);
  Generation::start(context, writer, request, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kChatCompletions = {
    .method = "POST",
    .pattern = "/v1/chat/completions",
    .meaning = "the next message of a conversation",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_chat(context, writer), *writer); },
    .fields = [] { return beside_common_fields(chat_fields()); },
};

}  // namespace kvasir::server::api
