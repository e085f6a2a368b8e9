#include "server/api/openai/plain_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace kvasir::server::api {
namespace {

ApiResult<PlainPrompt> prompt_of(const FieldInput& field) {
  if (field.json.is_string()) {
    KVASIR_TRY(std::string text, string_of(field));
    return PlainPrompt{field.name, std::move(text)};
  }
  if (!field.json.is_array()) return wrong_type(field, "a string or an array of token ids");
  KVASIR_TRY(std::vector<TokenId> ids, token_ids_of(field));
  if (ids.empty()) return bad_request(field.name + " must not be empty", field.name);
  return PlainPrompt{field.name, std::move(ids)};
}

}  // namespace

ApiResult<std::vector<PlainPrompt>> prompts_of(const FieldInput& field, const Limit& limit) {
  if (!field.json.is_string() && !field.json.is_array()) {
    return wrong_type(field, "a string, an array of strings, token ids, or an array of arrays of token ids");
  }
  std::vector<PlainPrompt> prompts;
  const bool is_list = field.json.is_array() && field.json.get_array().value().size() > 0 &&
                       !field.json.get_array().value().at(0).is_number();
  if (!is_list) {
    KVASIR_TRY(PlainPrompt prompt, prompt_of(field));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  const JsonArray list = field.json.get_array().value();
  const auto count = static_cast<std::int64_t>(list.size());
  if (count > limit.max) return std::unexpected(beyond(limit, count, field.name));
  for (const JsonElement json : list) {
    KVASIR_TRY(PlainPrompt prompt, prompt_of(field.at(prompts.size(), json)));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

ApiResult<std::vector<TokenId>> encode_prompt(const PlainPrompt& prompt, const Engine& engine,
                                              text::EncodeOptions options, EmptyText empty_text) {
  const auto& [name, content] = prompt;
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&content)) {
    const std::int32_t vocab_size = engine.model_info().vocab_size;
    const auto foreign = std::ranges::find_if(*ids, [&](TokenId id) { return id >= vocab_size; });
    if (foreign == ids->end()) return *ids;
    const std::string of_token = fmt::format("{}[{}]", name, foreign - ids->begin());
    return bad_request(
        fmt::format("{}: token id {} is outside the vocabulary of {}", of_token, *foreign, vocab_size),
        of_token);
  }
  if (engine.tokenizer() == nullptr) {
    return bad_request(fmt::format("the model file has no tokenizer: the {} must be token ids", name), name);
  }
  std::vector<TokenId> ids = engine.tokenizer()->encode(std::get<std::string>(content), options);
  const text::Vocab& vocab = engine.tokenizer()->vocab();
  const TokenId border = vocab.bos() == kNoToken ? vocab.eos() : vocab.bos();
  if (ids.empty() && empty_text == EmptyText::kBegins && border != kNoToken) ids.push_back(border);
  if (ids.empty()) return bad_request(name + " must not be empty", name);
  return ids;
}

}  // namespace kvasir::server::api
