// From a conversation to the tokens the model reads.
#pragma once

#include <cstdint>
#include <vector>

#include "kvasir/ids.h"
#include "server/api/api_context.h"
#include "server/api/chat_request.h"
#include "server/api/tool_calls/tool_call_reading.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// Renders the model's template, in a form of the conversation that it takes, and tokenises the result; control
// tokens come from the template only, never from a message. Errors (400): what the template refuses, a limit of
// its rendering. Requires: a model with tokenizer and template.
ApiResult<std::vector<TokenId>> chat_prompt(const ApiContext& context, const ChatRequest& request,
                                            std::string_view prompt_field = "messages");

// How a prompt shows a request's tools: as the template does, as text, or not at all.
enum class ToolForm : std::uint8_t { kOfTemplate, kGeneric, kHidden };

// The same of any template.
ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer, ToolForm form = ToolForm::kOfTemplate,
                                            std::string_view prompt_field = "messages");

// The prompt of a chat that is to be answered, however long; `prompt_field` is what its conversation is
// called. Errors (400): as chat_prompt's; a model without tokenizer or template.
ApiResult<std::vector<TokenId>> answerable_prompt(const ApiContext& context, const ChatRequest& request,
                                                  std::string_view prompt_field = "messages");

// The engine's request for it. Errors (400): the same, and what is beyond the context.
ApiResult<Request> chat_engine_request(const ApiContext& context, const ChatRequest& request,
                                       http::ResponseWriter& writer,
                                       std::string_view prompt_field = "messages");

}  // namespace kvasir::server::api
