#include "text/vocab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "text/special_tokens.h"

namespace kvasir::text {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 28;  // ids and table sizes stay far from overflow

Result<VocabModel> parse_model(std::string_view name) {
  if (name == "gpt2") return VocabModel::kByteLevelBpe;
  if (name == "llama") return VocabModel::kSentencePiece;
  if (name == "bert") return VocabModel::kWordPiece;
  if (name == "t5") return VocabModel::kUnigram;
  if (name == "gemma4") return VocabModel::kCharacterBpe;
  if (name == "tokenizer.json") return VocabModel::kTokenizerJson;
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("tokenizer.ggml.model '{}' is not supported (gpt2, llama, bert, t5 and gemma4 are)",
                  printable(name)));
}

struct DefaultIds {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId unknown = kNoToken;
};

DefaultIds default_ids(VocabModel model) {
  if (model == VocabModel::kSentencePiece) return {.bos = 1, .eos = 2, .unknown = 0};  // Llama 2
  if (model == VocabModel::kWordPiece) return {.bos = 101, .unknown = 100};            // BERT: [CLS], [UNK]
  if (model == VocabModel::kUnigram) return {.eos = 1, .unknown = 2};                  // T5
  return {};
}

// Values that GGUF does not define mean what llama.cpp takes them for.
TokenType token_type(std::int32_t value) {
  const bool is_known = value >= 0 && value <= static_cast<std::int32_t>(TokenType::kByte);
  return is_known ? static_cast<TokenType>(value) : TokenType::kUndefined;
}

Status check_length(std::string_view key, std::size_t length, std::size_t num_tokens) {
  if (length == 0 || length >= num_tokens) return {};
  return make_error(ErrorKind::kBadFile,
                    fmt::format("tokenizer.ggml.{} has {} entries for {} tokens", key, length, num_tokens));
}

Status check_id(std::string_view key, TokenId id, std::size_t num_tokens) {
  if (id == kNoToken || (id >= 0 && static_cast<std::size_t>(id) < num_tokens)) return {};
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("tokenizer.ggml.{} is {}, outside the vocabulary of {} tokens", key, id, num_tokens));
}

bool is_named_end(const VocabData& ids, TokenId id) {
  return id == ids.eos || id == ids.eot || id == ids.eom ||
         std::ranges::find(ids.extra_end_of_generation, id) != ids.extra_end_of_generation.end();
}

}  // namespace

Result<Vocab> Vocab::create(VocabData data) {
  KVASIR_TRY(const VocabModel model, parse_model(data.model));
  if (data.tokens.empty() || data.tokens.size() > kMaxTokens) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tokenizer.ggml.tokens has {} entries (1 to {} are allowed)",
                                  data.tokens.size(), kMaxTokens));
  }
  Vocab vocab(model, data.tokens.size());
  KVASIR_CHECKED(vocab.set_tokens(data));
  KVASIR_CHECKED(vocab.set_special_ids(data));
  return vocab;
}

Status Vocab::set_tokens(VocabData& data) {
  const std::size_t num_tokens = data.tokens.size();
  KVASIR_CHECKED(check_length("scores", data.scores.size(), num_tokens));
  KVASIR_CHECKED(check_length("token_type", data.token_types.size(), num_tokens));
  texts_ = std::move(data.tokens);
  scores_ = std::move(data.scores);
  types_.assign(num_tokens, TokenType::kNormal);
  for (std::size_t i = 0; i < data.token_types.size() && i < num_tokens; ++i) {
    types_[i] = token_type(data.token_types[i]);
  }
  for (std::size_t i = 0; i < num_tokens; ++i) {
    const auto id = static_cast<TokenId>(i);
    if (texts_[i].empty()) texts_[i] = fmt::format("[EMPTY_{}]", i);  // padded vocabularies have some
    if (!scores_.empty() && std::isnan(scores_[i])) {
      return make_error(ErrorKind::kBadFile, fmt::format("tokenizer.ggml.scores[{}] is not a number", i));
    }
    if (const TokenId first = index_.insert(texts_, id); first != id) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("tokenizer.ggml.tokens[{}] repeats the text of token {}: '{}'", i, first,
                                    printable(texts_[i])));
    }
    longest_token_bytes_ = std::max(longest_token_bytes_, texts_[i].size());
  }
  return {};
}

Status Vocab::set_special_ids(const VocabData& data) {
  const std::size_t num_tokens = texts_.size();
  const std::pair<std::string_view, TokenId> named[] = {
      {"bos_token_id", data.bos},
      {"eos_token_id", data.eos},
      {"eot_token_id", data.eot},
      {"eom_token_id", data.eom},
      {"unknown_token_id", data.unknown},
      {"padding_token_id", data.padding},
      {"cls_token_id", data.classification},
      {"seperator_token_id", data.separator},
      {"fim_pre_token_id", data.fim_prefix},
      {"fim_suf_token_id", data.fim_suffix},
      {"fim_mid_token_id", data.fim_middle},
      {"fim_pad_token_id", data.fim_padding},
      {"fim_rep_token_id", data.fim_repository},
      {"fim_sep_token_id", data.fim_separator},
  };
  for (const auto& [key, id] : named) KVASIR_CHECKED(check_id(key, id, num_tokens));
  for (const TokenId id : data.extra_end_of_generation) {
    KVASIR_CHECKED(check_id("(extra end of generation)", id, num_tokens));
  }
  // Files that name no ids mean those of the model that each kind was first written for.
  const DefaultIds defaults = default_ids(model_);
  const auto with_default = [&](TokenId id, TokenId usual) {
    return id == kNoToken && contains(usual) ? usual : id;
  };
  VocabData ids = {.eot = data.eot,
                   .eom = data.eom,
                   .fim_padding = data.fim_padding,
                   .fim_repository = data.fim_repository,
                   .fim_separator = data.fim_separator,
                   .fim_prefix = data.fim_prefix,
                   .fim_suffix = data.fim_suffix,
                   .fim_middle = data.fim_middle,
                   .extra_end_of_generation = data.extra_end_of_generation};
  ids.eos = eos_ = with_default(data.eos, defaults.eos);
  bos_ = with_default(data.bos, defaults.bos);
  unknown_ = with_default(data.unknown, defaults.unknown);
  padding_ = data.padding;

  const auto find_text = [this](std::string_view text) { return find(text); };
  fim_tokens_ = find_fim_tokens(data, find_text);
  SpecialTokens special = find_special_tokens(ids, find_text);
  keep_html_tag(ids, special);
  keep_plain_pieces(ids, special);
  const auto set_types = [this](const std::vector<TokenId>& tokens, TokenType type) {
    for (const TokenId id : tokens) types_[static_cast<std::size_t>(id)] = type;
  };
  set_types(special.control, TokenType::kControl);
  set_types(special.user_defined, TokenType::kUserDefined);
  set_types(special.normal, TokenType::kNormal);
  end_of_generation_ = std::move(special.end_of_generation);
  return {};
}

// Gemma's "</s>" is a tag of HTML, which its file says: a token for users, and no end that any file names. GGUF files
// of others mark every added token so: there another tag must stand beside it.
void Vocab::keep_html_tag(const VocabData& ids, SpecialTokens& special) const {
  const TokenId id = find("</s>");
  if (id == kNoToken || type(id) != TokenType::kUserDefined || id == ids.eos) return;
  const TokenId other_tag = find("</b>");
  const bool has_tags = other_tag != kNoToken && type(other_tag) == TokenType::kUserDefined;
  if (model_ != VocabModel::kTokenizerJson && !has_tags) return;
  if (is_named_end(ids, id)) return;
  std::erase(special.control, id);
  std::erase(special.end_of_generation, id);
}

// A tokenizer.json lists its special tokens: a piece beside them is text, whatever it looks like.
void Vocab::keep_plain_pieces(const VocabData& ids, SpecialTokens& special) const {
  if (model_ != VocabModel::kTokenizerJson) return;
  const auto is_plain = [&](TokenId id) { return type(id) == TokenType::kNormal && !is_named_end(ids, id); };
  std::erase_if(special.control, is_plain);
  std::erase_if(special.end_of_generation, is_plain);
}

bool Vocab::is_end_of_generation(TokenId id) const {
  return std::ranges::binary_search(end_of_generation_, id);
}

}  // namespace kvasir::text
