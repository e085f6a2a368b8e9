// POST /v1/chat/completions
#include <utility>

#include "server/api/answer_start.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/openai/chat_fields.h"
#include "server/api/openai/chat_format.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_chat(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const ChatRequest request, read_request(context, *writer, parse_chat_request));
  AnswerHeader header = make_answer_header(context, request, "chatcmpl-");
  KVASIR_TRY(ChatStart start, start_of_chat(context, request, *writer, header.id));
  ChatFormat::Options options = {.header = std::move(header),
                                 .num_choices = request.sampling.n,
                                 .logprobs = request.logprobs,
                                 .prompt_logprobs = request.sampling.prompt_logprobs.has_value(),
                                 .timings = request.timings_per_token,
                                 .tool_calls = std::move(start.tool_calls),
                                 .tool_origins = request.tool_origins};
  auto format = std::make_unique<ChatFormat>(std::move(options), *context.engine.tokenizer(), context.ids);
  answer_one(context, writer, request, std::move(format), std::move(start.wanted));
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
