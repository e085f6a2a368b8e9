// POST /v1/messages

#include <utility>

#include "server/api/answer_start.h"
#include "server/api/anthropic/messages_format.h"
#include "server/api/anthropic/messages_request.h"
#include "server/api/endpoint.h"
#include "server/api/field_reference.h"

namespace kvasir::server::api {
namespace {

ApiStatus start_messages(ApiContext& context, const Writer& writer) {
  KVASIR_TRY(const MessagesRequest request, read_request(context, *writer, parse_messages_request));
  KVASIR_TRY(ChatStart start, start_of_chat(context, request, *writer, context.ids.next("msg_")));
  auto format = std::make_unique<MessagesFormat>(
      MessagesFormat::Options{.id = start.wanted.client_id,
                              .model = answering_name(context, request),
                              .tool_calls = std::move(start.tool_calls)},
      context.ids);
  answer_one(context, writer, request, std::move(format), std::move(start.wanted));
  return {};
}

}  // namespace

extern const Endpoint kMessages = {
    .method = "POST",
    .pattern = "/v1/messages",
    .meaning = "the next message of a conversation, as Anthropic's clients ask",
    .answer = [](ApiContext& context, const Writer& writer,
                 const std::string&) { respond_unless(start_messages(context, writer), *writer); },
    .api = "anthropic",
    .fields = [] { return beside_common_fields(messages_fields()); },
};

}  // namespace kvasir::server::api
