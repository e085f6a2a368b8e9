#include "server/api/chat_prompt.h"

#include <utility>

#include "server/api/adapter_choice.h"
#include "server/api/template_dict.h"
#include "server/api/thinking.h"
#include "text/chat_prompt.h"

namespace kvasir::server::api {
namespace {

using jinja::Value;

constexpr std::string_view kCalls = "tool_calls";  // of a message, as templates read it

// A text in the dict under the key, cut to its end.
Value with_short_text(const Value& dict, std::string_view key, std::size_t length) {
  TemplateEntries entries;
  for (const auto& [name, value] : dict.as_dict().entries()) {
    const bool is_long = name.as_string() == key && value.is_string() && value.as_string().size() > length;
    const std::string text = is_long ? value.as_string() : std::string();
    entries.emplace_back(name, is_long ? Value::string(text.substr(text.size() - length)) : value);
  }
  return Value::dict(std::move(entries));
}

// Mistral's templates refuse ids of calls that have not nine letters and digits. The ends of ours differ.
Value with_short_call_ids(const Value& messages) {
  constexpr std::size_t kLength = 9;
  std::vector<Value> changed;
  for (const Value& message : messages.as_list().items) {
    TemplateEntries entries = with_short_text(message, "tool_call_id", kLength).as_dict().entries();
    for (auto& [name, value] : entries) {
      if (name.as_string() != kCalls || !value.is_list()) continue;
      std::vector<Value> calls;
      for (const Value& call : value.as_list().items) calls.push_back(with_short_text(call, "id", kLength));
      value = Value::list(std::move(calls));
    }
    changed.push_back(Value::dict(std::move(entries)));
  }
  return Value::list(std::move(changed));
}

}  // namespace

ApiResult<std::vector<TokenId>> chat_prompt(const ApiContext& context, const ChatRequest& request,
                                            std::string_view prompt_field) {
  ToolForm form = ToolForm::kOfTemplate;
  if (!request.tools.is_none() && !shows_tools(context, request)) {
    const bool reads_tools = template_of(context, request).source().contains("tools");
    form = request.may_call_tools() ? ToolForm::kGeneric : reads_tools ? form : ToolForm::kHidden;
  }
  return chat_prompt(request, *context.engine.chat_template(), *context.engine.tokenizer(), form,
                     prompt_field);
}

ApiResult<std::vector<TokenId>> chat_prompt(const ChatRequest& request,
                                            const text::ChatTemplate& chat_template,
                                            const text::Tokenizer& tokenizer, ToolForm form,
                                            std::string_view prompt_field) {
  text::ChatTemplateInputs inputs;
  const text::ChatTemplate& used = request.tools.is_none() ? chat_template : chat_template.for_tools();
  const bool has_short_ids = used.source().contains("[TOOL_CALLS]");
  inputs.messages = has_short_ids ? with_short_call_ids(request.messages) : request.messages;
  if (form != ToolForm::kHidden) inputs.tools = request.tools;
  if (!request.documents.is_none() && !used.source().contains("documents")) {
    return bad_request("documents: the model's chat template shows none", "documents", "unsupported_content");
  }
  inputs.documents = request.documents;
  inputs.add_generation_prompt = request.add_generation_prompt;
  inputs.extra = template_variables(request, used.source());
  inputs.has_generic_tools = form == ToolForm::kGeneric;
  inputs.continues_last_message = request.continue_final_message;
  auto prompt = text::encode_chat(std::move(inputs), chat_template, tokenizer);
  if (!prompt) {
    // Templates have bounds of output and work, far beyond any context.
    const bool is_too_long = prompt.error().kind == ErrorKind::kUnmet && prompt.error().message.contains("limit of");
    return bad_request((is_too_long ? "the conversation is too long: " : "") + prompt.error().message,
                       std::string(prompt_field), is_too_long ? "context_length_exceeded" : "chat_template_error");
  }
  return std::move(*prompt);
}

ApiResult<std::vector<TokenId>> answerable_prompt(const ApiContext& context, const ChatRequest& request,
                                                  std::string_view prompt_field) {
  const Engine& engine = context.engine;
  if (engine.tokenizer() == nullptr) {
    return bad_request("the model file has no tokenizer: only /v1/completions with token ids works",
                       std::string(prompt_field));
  }
  if (engine.model_info().is_encoder) {
    return bad_request("model: it is an encoder, which gives embeddings or scores and generates no text: use "
                       "/v1/embeddings or /v1/rerank",
                       "model", "not_supported");
  }
  if (engine.chat_template() == nullptr) {
    return bad_request(
        "the model has no chat template: use /v1/completions, or start the server with --chat-template FILE",
        std::string(prompt_field), "no_chat_template");
  }
  return chat_prompt(context, request, prompt_field);
}

ApiResult<Request> chat_engine_request(const ApiContext& context, const ChatRequest& request,
                                       http::ResponseWriter& writer, std::string_view prompt_field) {
  KVASIR_TRY(std::vector<TokenId> prompt, answerable_prompt(context, request, prompt_field));
  Request wanted = engine_request(request, writer.request().tenant, context.kv, std::move(prompt));
  KVASIR_CHECKED(choose_adapter(context, request, wanted));
  if (!request.prediction.empty()) {
    wanted.predicted_token_ids =
        context.engine.tokenizer()->encode(request.prediction, {.parse_special = false, .add_special = false});
  }
  Warnings warnings;
  warn_unread_wishes(request.thinking, template_of(context, request).source(), warnings);
  KVASIR_CHECKED(fit_context(context, wanted, prompt_field, warnings));
  add_warnings(warnings, writer);
  return wanted;
}

}  // namespace kvasir::server::api
