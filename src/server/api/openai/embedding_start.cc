#include "server/api/openai/embedding_start.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <variant>

#include "engine/embedding_prompt.h"
#include "server/api/adapter_choice.h"
#include "server/request_memory.h"

namespace kvasir::server::api {
namespace {

// The text that goes before each input that is a text. Error (400): as embedding_prompt().
ApiResult<std::string> embedding_prompt_of(const ModelInfo& model, const PromptWish& wish, http::ResponseWriter& writer) {
  auto prompt = embedding_prompt(model, wish);
  if (!prompt) return std::unexpected(to_api_error(std::move(prompt).error()));
  if (wish.input_type && model.embedding_prompts.empty()) {
    add_warnings({.messages = {"input_type is left out: the model has no prompts"}}, writer);
  }
  return *std::move(prompt);
}

ApiResult<PlainPrompt> with_prompt(PlainPrompt input, const std::string& prompt, const PromptWish& wish) {
  if (prompt.empty()) return input;
  if (auto* text = std::get_if<std::string>(&input.content)) {
    text->insert(0, prompt);
  } else if (wants_prompt(wish)) {
    return bad_request(input.name + " has token ids, and a prompt goes before texts alone", input.name);
  }
  return input;
}

// Keeps what ends every text of the model.
void cut_input(const text::Tokenizer& tokenizer, std::int32_t most, const std::string& name, std::vector<TokenId>& ids,
               Warnings& warnings) {
  if (std::ssize(ids) <= most) return;
  const TokenId last = ids.back();
  ids.resize(static_cast<std::size_t>(most));
  if (tokenizer.vocab().is_special(last)) ids.back() = last;
  warnings.add(fmt::format("{} was cut to the {} tokens that the model reads", name, most));
}

ApiStatus check_wishes(const ModelInfo& model, const EmbeddingRequest& asked) {
  if (asked.dimensions && *asked.dimensions > model.embedding_size) {
    return bad_request(fmt::format("dimensions must be at most {}, as many as the model has, got {}",
                                   model.embedding_size, *asked.dimensions),
                       "dimensions");
  }
  if (model.pooling == Pooling::kRank && asked.pooling == Pooling::kOfModel) {
    return bad_request("model: it scores pairs of texts, and has no embeddings unless pooling says which", "model");
  }
  return {};
}

}  // namespace

ApiResult<std::vector<Request>> embedding_requests(const ApiContext& context, EmbeddingRequest asked,
                                                   http::ResponseWriter& writer, const std::string& id,
                                                   bool truncates) {
  const ModelInfo& model = context.engine.model_info();
  KVASIR_CHECKED(check_wishes(model, asked));
  KVASIR_TRY(const std::string prompt, embedding_prompt_of(model, asked.prompt, writer));
  // A prompt is there once for each input: this counts until all of the request does.
  RequestMemory::Share prompts(context.memory, writer.request().tenant.name);
  KVASIR_CHECKED(plan_answer(writer, std::ssize(prompt) * std::ssize(asked.inputs) * kBytesPerTextByte, prompts));
  std::vector<Request> requests;
  Warnings warnings;
  for (PlainPrompt& own : asked.inputs) {
    KVASIR_TRY(const PlainPrompt input, with_prompt(std::move(own), prompt, asked.prompt));
    Request request;
    KVASIR_TRY(request.prompt_token_ids,
               encode_prompt(input, context.engine,
                             {.parse_special = asked.parse_special, .add_special = asked.add_special_tokens}));
    if (truncates) {
      cut_input(*context.engine.tokenizer(), model.max_model_len_tokens, input.name, request.prompt_token_ids, warnings);
    }
    choose_adapter(context, asked.model, request);
    request.pooling = asked.pooling;
    request.dimensions = static_cast<std::int32_t>(asked.dimensions.value_or(0));
    request.sampling.max_tokens = 0;
    request.use_prefix_cache = false;
    request.tenant = writer.request().tenant.name;
    request.priority = asked.priority;
    request.client_id = id;
    KVASIR_CHECKED(check_context(request, model.max_model_len_tokens, input.name));
    requests.push_back(std::move(request));
  }
  add_warnings(warnings, writer);
  return requests;
}

}  // namespace kvasir::server::api
