// Beginnings of the answers of every protocol: one conversation, or one plain prompt.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "server/api/answer_format.h"
#include "server/api/api_context.h"
#include "server/api/chat_request.h"
#include "server/api/openai/plain_prompt.h"
#include "server/api/tool_calls/tool_call_reading.h"

namespace kvasir::server::api {

struct ChatStart {
  Request wanted;
  ToolCallReading tool_calls;  // reads its answers
};

// A chat's request for the engine, guided where the chat says so. `prompt_field` is what its conversation is called.
// Warnings go with the answer. Errors (400): chat_engine_request()'s and guided_tool_calls()'s.
ApiResult<ChatStart> start_of_chat(const ApiContext& context, const ChatRequest& request, http::ResponseWriter& writer,
                                   std::string client_id, std::string_view prompt_field = "messages");

// The same of a prompt without a template. Errors (400): encode_prompt()'s, and what is beyond the context.
ApiResult<Request> start_of_text(const ApiContext& context, const GenerationRequest& request, const PlainPrompt& prompt,
                                 text::EncodeOptions options, http::ResponseWriter& writer, std::string client_id);
// The same for token ids that are there already.
ApiResult<Request> start_of_tokens(const ApiContext& context, const GenerationRequest& request,
                                   std::vector<TokenId> prompt, std::string_view prompt_field,
                                   http::ResponseWriter& writer, std::string client_id);

// Generation::start() with one request.
void answer_one(ApiContext& context, const std::shared_ptr<http::ResponseWriter>& writer,
                const GenerationRequest& asked, std::unique_ptr<AnswerFormat> format, Request wanted);

}  // namespace kvasir::server::api
