// POST /v1/messages

#include <utility>
#include <vector>

#include "server/api/anthropic/messages_format.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/chat_prompt.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"
#include "server/api/generation.h"
#include "server/api/tool_calls/tool_guide.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_messages(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, *writer, parse_messages_request));
  KVASIR_TRY(Request wanted, chat_engine_request(context, request, *writer));
  wanted.client_id = context.ids.next("msg_");
  KVASIR_TRY(ToolCallReading tool_calls, guided_tool_calls(context, request, wanted, *writer));
  auto format = std::make_unique<MessagesFormat>(
      MessagesFormat::Options{.id = wanted.client_id,
                              .model = context.model_name,
                              .tool_calls = std::move(tool_calls)},
      context.ids);
  std::vector<Request> requests;
  requests.push_back(std::move(wanted));
  Generation::start(context, writer, request, std::move(format), std::move(requests));
  return {};
}

}  // namespace

extern const Endpoint kMessages = {
    .method = "POST",
    .pattern = "/v1/messages",
    .meaning = "the next message of a conversation, as Anthropic's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_messages(context, writer), *writer); },
    .fields = [] { return beside_common_fields(messages_fields()); },
};

}  // namespace kvasir::server::api
