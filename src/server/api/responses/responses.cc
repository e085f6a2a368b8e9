// POST /v1/responses

#include <ctime>
#include <utility>
#include <vector>

#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/responses/responses_format.h"
#include "server/api/responses/responses_request.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_responses(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(ResponsesRequest request, read_request(context, *writer, parse_responses_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer, "input"));
  request.messages = {};  // has become a prompt
  wanted.client_id = context.ids.next("resp_");
  const GenerationRequest asked = request;
  ToolCallReading tool_calls = tool_call_reading(context, request, wanted);
  auto format = std::make_unique<ResponsesFormat>(
      ResponsesFormat::Options{.id = wanted.client_id,
                               .created_s = static_cast<std::int64_t>(std::time(nullptr)),
                               .model = context.model_name,
                               .request = std::move(request),
                               .tool_calls = std::move(tool_calls)},
      *context.engine.tokenizer(), context.ids);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, asked, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kResponses = {
    .method = "POST",
    .pattern = "/v1/responses",
    .meaning = "the next message of a conversation, as OpenAI's newer clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_responses(context, writer), *writer); },
    .fields = [] { return beside_common_fields(responses_fields()); },
};

}  // namespace kvasir::server::api
