#include "text/hf/tokenizer_json.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "text/hf/added_tokens.h"
#include "text/hf/component_json.h"
#include "text/hf/json_view.h"
#include "text/hf/model_json.h"
#include "text/hf/post_processors.h"
#include "text/hf/special_ids.h"
#include "text/pipeline.h"
#include "text/tokenizer_parts.h"

namespace kvasir::text {
namespace {

using hf::AddedToken;
using hf::JsonView;

// The vocabulary that all tekken tokenizers have, and an id that only they give to this token.
constexpr std::int32_t kTekkenTokens = 131'072;
constexpr TokenId kTekkenInstruction = 3;

// Whether a pre-tokenizer, or the first of a row, splits by Llama 3's pattern.
bool splits_like_llama3(const JsonView& json) {
  std::optional<JsonView> split = json;
  if (const auto list = json.find("pretokenizers")) {
    const auto elements = list->elements();
    split = elements && !elements->empty() ? std::optional(elements->front()) : std::nullopt;
  }
  const auto pattern = split ? split->find("pattern") : std::nullopt;
  const auto regex = pattern ? pattern->find("Regex") : std::nullopt;
  const auto text = regex ? regex->string() : Result<std::string>(std::string());
  return text && *text == hf::llama3_pattern();
}

Result<hf::PreTokenizer> read_pre_tokenizer(const JsonView& json, const Vocab& vocab,
                                            std::vector<std::string>* notices) {
  const bool is_tekken = vocab.num_tokens() == kTekkenTokens && vocab.find("[INST]") == kTekkenInstruction;
  if (!is_tekken || !splits_like_llama3(json)) return hf::read_pre_tokenizer(json);
  if (notices != nullptr) {
    notices->emplace_back(
        "tokenizer.json: a Mistral vocabulary with the pattern of Llama 3, a known fault: Mistral's own is "
        "used");
  }
  return hf::sequence({hf::split(hf::find_tekken_words(), hf::SplitBehavior::kIsolated),
                       hf::byte_level(/*add_prefix_space=*/false, /*use_regex=*/false)});
}

// A special token must be found whatever a normalizer does: it is structure, not text.
bool is_matched_raw(const AddedToken& added, const Vocab& vocab) {
  return !added.is_normalized || added.token.is_hidden || vocab.is_hidden(added.token.id);
}

std::vector<SpecialToken> raw_tokens(const std::vector<AddedToken>& added, const Vocab& vocab) {
  std::vector<SpecialToken> tokens;
  for (const AddedToken& entry : added) {
    if (!is_matched_raw(entry, vocab)) continue;
    tokens.push_back(entry.token);
    tokens.back().is_hidden = vocab.is_hidden(entry.token.id);
  }
  return tokens;
}

std::vector<SpecialToken> normalized_tokens(const std::vector<AddedToken>& added, const Vocab& vocab,
                                            const hf::Normalizer& normalizer) {
  std::vector<SpecialToken> tokens;
  for (const AddedToken& entry : added) {
    if (is_matched_raw(entry, vocab)) continue;
    tokens.push_back(entry.token);
    if (normalizer) tokens.back().text = normalizer(entry.token.text);
  }
  return tokens;
}

// `other_texts`: of tokens that stand for another text than their own, the normalised one.
TokenizerParts::TokenBytes token_bytes(const Vocab& vocab,
                                       std::unordered_map<TokenId, std::string> other_texts,
                                       hf::Decoder decoder) {
  return [&vocab, other_texts = std::move(other_texts), decoder = std::move(decoder)](
             TokenId id, bool at_text_start) -> std::string {
    if (vocab.type(id) == TokenType::kUnused) return {};
    const auto other = other_texts.find(id);
    std::string text = other == other_texts.end() ? std::string(vocab.text(id)) : other->second;
    hf::DecodedToken token = {.text = std::move(text), .at_text_start = at_text_start};
    decoder(token);
    return token.text;
  };
}

// Follows the post-processor; where there is none, or one that only corrects offsets, tokenizer_config.
Result<SequenceFrame> read_frame(const JsonView& root, const Vocab& vocab, const VocabData& data) {
  if (const auto json = root.find("post_processor")) {
    KVASIR_TRY(const std::string type, json->string_at("type"));
    KVASIR_TRY(SequenceFrame frame, hf::read_post_processor(*json, vocab));
    if (type != "ByteLevel") return frame;
  }
  SequenceFrame frame;
  if (data.add_bos.value_or(false) && vocab.bos() != kNoToken) frame.before.push_back(vocab.bos());
  if (data.add_eos.value_or(false) && vocab.eos() != kNoToken) frame.after.push_back(vocab.eos());
  return frame;
}

Result<Pipeline::Parts> read_pipeline(const JsonView& root, const Vocab& vocab,
                                      const std::vector<AddedToken>& added,
                                      std::vector<std::string>* notices) {
  Pipeline::Parts parts;
  if (const auto json = root.find("normalizer")) {
    KVASIR_TRY(parts.normalizer, hf::read_normalizer(*json));
  }
  if (const auto json = root.find("pre_tokenizer")) {
    KVASIR_TRY(parts.pre_tokenizer, read_pre_tokenizer(*json, vocab, notices));
  }
  std::vector<SpecialToken> normalized = normalized_tokens(added, vocab, parts.normalizer);
  if (!normalized.empty())
    parts.normalized_tokens.emplace(std::move(normalized));
  return parts;
}

Result<std::unique_ptr<Tokenizer>> read_tokenizer(const JsonView& root, const TokenizerFiles& files,
                                                  std::vector<std::string>* notices) {
  KVASIR_TRY(const JsonView model_json, root.at("model"));
  KVASIR_TRY(const hf::ModelJson model, hf::read_model(model_json));
  KVASIR_TRY(std::vector<AddedToken> added, hf::read_added_tokens(root));
  KVASIR_TRY(hf::JoinedVocab joined, hf::join_vocab(root, model, added));
  KVASIR_CHECKED(hf::read_special_ids({.tokenizer_config = files.tokenizer_config,
                                       .config = files.config,
                                       .generation_config = files.generation_config},
                                      joined.data));
  const VocabData flags = {.add_bos = joined.data.add_bos, .add_eos = joined.data.add_eos};
  KVASIR_TRY(Vocab created, Vocab::create(std::move(joined.data)));
  auto vocab = std::make_unique<const Vocab>(std::move(created));
  KVASIR_TRY(Pipeline::Parts pipeline, read_pipeline(root, *vocab, added, notices));
  KVASIR_TRY(pipeline.model, hf::make_word_model(model_json, model, {*vocab, std::move(joined.is_added)}));
  hf::Decoder decoder = hf::spaced_decoder();
  if (const auto json = root.find("decoder")) {
    KVASIR_TRY(decoder, hf::read_decoder(*json));
  }
  KVASIR_TRY(SequenceFrame frame, read_frame(root, *vocab, flags));
  std::vector<SpecialToken> special = raw_tokens(added, *vocab);
  std::unordered_map<TokenId, std::string> other_texts;
  for (SpecialToken& token : normalized_tokens(added, *vocab, pipeline.normalizer)) {
    other_texts.emplace(token.id, std::move(token.text));
  }
  TokenizerParts::TokenBytes bytes = token_bytes(*vocab, std::move(other_texts), std::move(decoder));
  return std::make_unique<Tokenizer>(TokenizerParts{.vocab = std::move(vocab),
                                                    .model = Pipeline(std::move(pipeline)),
                                                    .frame = std::move(frame),
                                                    .special_tokens = std::move(special),
                                                    .token_bytes = std::move(bytes)});
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer_json(const TokenizerFiles& files,
                                                       std::vector<std::string>* notices) {
  simdjson::dom::parser parser;
  simdjson::dom::element root;
  const auto error = parser.parse(files.tokenizer_json.data(), files.tokenizer_json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return make_error(ErrorKind::kBadFile, std::string("tokenizer.json: ") + simdjson::error_message(error));
  }
  return read_tokenizer(JsonView(root, "tokenizer.json"), files, notices);
}

}  // namespace kvasir::text
