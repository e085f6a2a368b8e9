#include "server/api/responses/endpoints.h"

#include <ctime>
#include <utility>
#include <vector>

#include "server/api/chat_prompt.h"
#include "server/api/generation.h"
#include "server/api/responses/responses_format.h"
#include "server/api/responses/responses_request.h"

namespace kvasir::server::api {
namespace {

ApiStatus start(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  KVASIR_TRY(ResponsesRequest request, read_request(context, *writer, parse_responses_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer, "input"));
  request.messages = {};  // has become a prompt
  wanted.client_id = context.ids.next("resp_");
  const GenerationRequest asked = request;
  const ToolCallFormat tool_calls = tool_call_format(context, request);
  auto format = std::make_unique<ResponsesFormat>(
      ResponsesFormat::Options{.id = wanted.client_id,
                               .created_s = static_cast<std::int64_t>(std::time(nullptr)),
                               .model = context.model_name,
                               .request = std::move(request),
                               .tool_calls = tool_calls},
      *context.engine.tokenizer(), context.ids);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, asked, std::move(format), std::move(requests));
  return {};
}

}  // namespace

void handle_responses(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer) {
  respond_unless(start(context, writer), *writer);
}

}  // namespace kvasir::server::api
