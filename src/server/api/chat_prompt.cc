#include "server/api/chat_prompt.h"

#include <algorithm>
#include <utility>

#include "text/chat_prompt.h"

namespace kvasir::server {
namespace {

constexpr std::string_view kCalls = "tool_calls";  // of a message, as templates read it

bool has_calls(const text::jinja::Value& messages) {
  return std::ranges::any_of(messages.as_list().items, [](const text::jinja::Value& message) {
    return message.is_dict() && message.as_dict().find(kCalls) != nullptr;
  });
}

}  // namespace

ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer, std::string_view prompt_field) {
  text::ChatTemplateInputs inputs;
  inputs.messages = request.messages;
  inputs.tools = request.tools;
  inputs.add_generation_prompt = request.add_generation_prompt;
  inputs.extra = request.template_kwargs;
  auto prompt = text::encode_chat(std::move(inputs), chat_template, tokenizer);
  if (!prompt) return bad_request(prompt.error().message, std::string(prompt_field), "chat_template_error");
  return std::move(*prompt);
}

ToolCallFormat tool_call_format(const ApiContext& context, const ChatRequest& request) {
  if (!request.may_call_tools()) return ToolCallFormat::kNone;
  return tool_call_format_of(context.engine.chat_template()->source());
}

ApiResult<std::vector<TokenId>> answerable_prompt(const ApiContext& context, const ChatRequest& request,
                                                  std::string_view prompt_field) {
  const Engine& engine = context.engine;
  if (engine.tokenizer() == nullptr) {
    return bad_request("the model file has no tokenizer: only /v1/completions with token ids works",
                       std::string(prompt_field));
  }
  if (engine.chat_template() == nullptr) {
    return bad_request(
        "the model has no chat template: use /v1/completions, or start the server with --chat-template FILE",
        std::string(prompt_field), "no_chat_template");
  }
  if (request.may_call_tools() && tool_call_format(context, request) == ToolCallFormat::kNone) {
    return bad_request(
        "the model's chat template shows no tools, or has calls in a form that is not known here: only "
        "tool_choice \"none\" works",
        "tools", "unsupported_parameter");
  }
  return chat_prompt(request, *engine.chat_template(), *engine.tokenizer(), prompt_field);
}

ApiResult<Request> chat_engine_request(const ApiContext& context, const ChatRequest& request,
                                       Exchange& exchange, std::string_view prompt_field) {
  KVASIR_TRY(std::vector<TokenId> prompt, answerable_prompt(context, request, prompt_field));
  Request wanted = engine_request(request, exchange.request().tenant, context.kv, std::move(prompt));
  KVASIR_CHECKED(check_context(wanted, context.engine.model_info().max_model_len_tokens, prompt_field));
  if (has_calls(request.messages) && !context.engine.chat_template()->source().contains(kCalls)) {
    add_warnings(
        Warnings{.messages = {"the model's chat template does not show the tool calls of earlier messages"}},
        exchange);
  }
  return wanted;
}

}  // namespace kvasir::server
