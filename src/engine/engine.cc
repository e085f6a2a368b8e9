// The common part of all engines, on top of their virtual members.
#include "kvasir/engine.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"
#include "text/chat_json.h"
#include "text/chat_prompt.h"
#include "text/tokenizer.h"

namespace kvasir {
namespace {

Result<const text::Tokenizer*> tokenizer_of(const Engine& engine) {
  if (engine.tokenizer() != nullptr) return engine.tokenizer();
  return make_error(ErrorKind::kBadFile, engine.model_info().name + ": the model has no tokenizer");
}

}  // namespace

Result<RequestId> Engine::submit(Request request, OutputSink sink) {
  std::vector<Submission> one;
  one.push_back({std::move(request), std::move(sink)});
  KVASIR_TRY(const std::vector<RequestId> ids, submit(std::move(one)));
  return ids.front();
}

void Engine::prepare_guide(const Guide&, std::string_view, std::stop_token, GuideSink sink) {
  sink(CompiledGuide());
}

AdapterNames Engine::adapters() const {
  static const AdapterNames kNone = std::make_shared<const std::vector<std::string>>();
  return kNone;
}

Status Engine::load_adapter(const AdapterConfig&) {
  return make_error(ErrorKind::kUnmet, "this engine runs no adapters");
}

Status Engine::unload_adapter(std::string_view name) {
  return make_error(ErrorKind::kNotFound, fmt::format("no adapter is called \"{}\"", printable(name)));
}

void Engine::prepare_adapter(std::string_view, std::stop_token, AdapterSink sink) { sink(AdapterHold()); }

void Engine::freeze_kv_policy(const KvPromise&) {}

Status Engine::resume_kv_policy(std::string_view policy) {
  return make_error(ErrorKind::kNotFound, fmt::format("policy: {} is not held back, for answers are not scored (--kv-shadow)", printable(policy)), "policy");
}

Result<std::vector<TokenId>> Engine::encode(std::string_view text) const {
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(*this));
  return tokenizer->encode(text, {.parse_special = false, .add_special = true});
}

Result<std::string> Engine::decode(std::span<const TokenId> token_ids, bool render_special) const {
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(*this));
  for (const TokenId id : token_ids) {
    if (tokenizer->vocab().contains(id)) continue;
    return make_error(
        ErrorKind::kUsage,
        fmt::format("token_ids: the vocabulary has {} tokens, no id {}", tokenizer->vocab().num_tokens(), id),
        "token_ids");
  }
  return tokenizer->decode(token_ids, render_special);
}

Result<std::vector<TokenId>> Engine::encode_chat(const ChatPrompt& prompt) const {
  KVASIR_TRY(const text::Tokenizer* tokenizer, tokenizer_of(*this));
  if (model_info().is_encoder) {
    return make_error(ErrorKind::kUsage, model_info().name + ": it is an encoder, which has no conversations",
                      "messages");
  }
  if (chat_template() == nullptr) {
    return make_error(ErrorKind::kUsage, model_info().name + ": the model has no chat template", "messages");
  }
  KVASIR_TRY(text::ChatTemplateInputs inputs,
             text::read_chat(prompt.messages, prompt.tools, prompt.template_kwargs));
  inputs.add_generation_prompt = prompt.add_generation_prompt;
  inputs.keeps_parts = true;
  return text::encode_chat(std::move(inputs), *chat_template(), *tokenizer);
}

}  // namespace kvasir
