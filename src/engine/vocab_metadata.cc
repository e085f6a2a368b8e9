#include "engine/vocab_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "base/printable.h"

namespace kvasir {
namespace {

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMinusOne = 0xFFFFFFFF;  // in 32 bits without a sign

constexpr std::pair<const char*, TokenId text::VocabData::*> kTokenIds[] = {
    {"tokenizer.ggml.bos_token_id", &text::VocabData::bos},
    {"tokenizer.ggml.eos_token_id", &text::VocabData::eos},
    {"tokenizer.ggml.eot_token_id", &text::VocabData::eot},
    {"tokenizer.ggml.eom_token_id", &text::VocabData::eom},
    {"tokenizer.ggml.unknown_token_id", &text::VocabData::unknown},
    {"tokenizer.ggml.padding_token_id", &text::VocabData::padding},
    {"tokenizer.ggml.cls_token_id", &text::VocabData::classification},
    {"tokenizer.ggml.seperator_token_id", &text::VocabData::separator},
    // The older keys first: where a file has both, the newer counts.
    {"tokenizer.ggml.prefix_token_id", &text::VocabData::fim_prefix},
    {"tokenizer.ggml.suffix_token_id", &text::VocabData::fim_suffix},
    {"tokenizer.ggml.middle_token_id", &text::VocabData::fim_middle},
    {"tokenizer.ggml.fim_pre_token_id", &text::VocabData::fim_prefix},
    {"tokenizer.ggml.fim_suf_token_id", &text::VocabData::fim_suffix},
    {"tokenizer.ggml.fim_mid_token_id", &text::VocabData::fim_middle},
    {"tokenizer.ggml.fim_pad_token_id", &text::VocabData::fim_padding},
    {"tokenizer.ggml.fim_rep_token_id", &text::VocabData::fim_repository},
    {"tokenizer.ggml.fim_sep_token_id", &text::VocabData::fim_separator},
};

// The ids behind a key, -1 for every way to say that there is none. One of several ends an answer: some
// writers give eos_token_id as a list.
Result<std::vector<std::int64_t>> read_ids(const io::Metadata& metadata, const char* key) {
  std::vector<std::int64_t> ids;
  if (const auto* number = std::get_if<std::uint64_t>(metadata.find(key));
      number != nullptr && *number > static_cast<std::uint64_t>(kMaxInt64)) {
    return ids;
  }
  if (metadata.is_array(key)) {
    KVASIR_TRY(const auto list, metadata.find_ints(key));
    ids = *list;
  } else {
    KVASIR_TRY(const auto id, metadata.find_int(key, -kMaxInt64, kMaxInt64));
    if (id) ids.push_back(*id);
  }
  std::erase_if(ids, [](std::int64_t id) { return id < 0 || id == kMinusOne; });
  return ids;
}

std::int64_t num_tokens_of(const io::Metadata& metadata) {
  const auto tokens = metadata.find_strings("tokenizer.ggml.tokens");
  return tokens && *tokens != nullptr ? std::ssize(**tokens) : 0;
}

Status read_special_ids(const io::Metadata& metadata, text::VocabData& data) {
  const std::int64_t num_tokens = std::ssize(data.tokens);
  for (const auto& [key, member] : kTokenIds) {
    KVASIR_TRY(std::vector<std::int64_t> ids, read_ids(metadata, key));
    std::erase_if(ids, [&](std::int64_t id) { return id >= num_tokens; });
    if (ids.empty()) continue;
    data.*member = static_cast<TokenId>(ids.front());
    if (member != &text::VocabData::eos) continue;
    data.extra_end_of_generation.assign(ids.begin() + 1, ids.end());
  }
  KVASIR_TRY(data.add_bos, metadata.find_bool("tokenizer.ggml.add_bos_token"));
  KVASIR_TRY(data.add_eos, metadata.find_bool("tokenizer.ggml.add_eos_token"));
  KVASIR_TRY(data.add_space_prefix, metadata.find_bool("tokenizer.ggml.add_space_prefix"));
  KVASIR_TRY(data.add_separator, metadata.find_bool("tokenizer.ggml.add_sep_token"));
  KVASIR_TRY(data.merge_spaces, metadata.find_bool("tokenizer.ggml.remove_extra_whitespaces"));
  KVASIR_TRY(data.lowercase, metadata.find_bool("tokenizer.ggml.normalizer.lowercase"));
  KVASIR_TRY(data.strip_accents, metadata.find_bool("tokenizer.ggml.normalizer.strip_accents"));
  return {};
}

Status read_token_lists(const io::Metadata& metadata, text::VocabData& data) {
  KVASIR_TRY(const auto* tokens, metadata.find_strings("tokenizer.ggml.tokens"));
  KVASIR_TRY(const auto* merges, metadata.find_strings("tokenizer.ggml.merges"));
  KVASIR_TRY(const auto scores, metadata.find_floats("tokenizer.ggml.scores"));
  KVASIR_TRY(const auto types, metadata.find_ints("tokenizer.ggml.token_type"));
  KVASIR_TRY(const auto charsmap, metadata.find_ints("tokenizer.ggml.precompiled_charsmap"));
  if (charsmap) {  // bytes, with a sign in some files
    for (const std::int64_t byte : *charsmap) data.charsmap.push_back(static_cast<char>(byte));
  }
  if (tokens != nullptr) data.tokens = *tokens;
  if (merges != nullptr) data.merges = *merges;
  if (scores) data.scores.assign(scores->begin(), scores->end());
  if (types) {
    data.token_types.reserve(types->size());
    for (const std::int64_t type : *types) {  // those outside of the known range are undefined
      data.token_types.push_back(static_cast<std::int32_t>(std::clamp<std::int64_t>(type, -1, kMaxId)));
    }
  }
  return {};
}

}  // namespace

Result<std::optional<text::VocabData>> read_vocab(const io::Metadata& metadata) {
  KVASIR_TRY(auto model, metadata.find_string("tokenizer.ggml.model"));
  if (!model || *model == "none" || *model == "no_vocab") return std::nullopt;
  text::VocabData data;
  data.model = std::move(*model);
  KVASIR_TRY(auto pre, metadata.find_string("tokenizer.ggml.pre"));
  data.pre = pre.value_or("");
  KVASIR_CHECKED(read_token_lists(metadata, data));
  KVASIR_CHECKED(read_special_ids(metadata, data));
  return data;
}

std::vector<std::string> vocab_notices(const io::Metadata& metadata) {
  std::vector<std::string> notices;
  const auto model = metadata.find_string("tokenizer.ggml.model");
  const auto pre = metadata.find_string("tokenizer.ggml.pre");
  if (model && *model == "gpt2" && pre && pre->value_or("").empty()) {
    notices.emplace_back(
        "tokenizer.ggml.pre is missing: the pre-tokenizer is a guess (default), and tokens may differ from "
        "the model's own");
  }
  const std::int64_t num_tokens = num_tokens_of(metadata);
  for (const auto& [key, member] : kTokenIds) {
    const auto ids = read_ids(metadata, key);
    if (!ids) continue;
    for (const std::int64_t id : *ids) {
      if (id < num_tokens) continue;
      notices.push_back(
          fmt::format("{} is {}, outside the vocabulary of {} tokens: ignored", key, id, num_tokens));
    }
  }
  if (const auto suppressed = metadata.find_ints("tokenizer.ggml.suppress_tokens");
      suppressed && *suppressed && !(*suppressed)->empty()) {
    notices.push_back(fmt::format("tokenizer.ggml.suppress_tokens names {} tokens: they are not suppressed",
                                  (*suppressed)->size()));
  }
  return notices;
}

// Without BOS and EOS an encoder's embeddings are plausible and wrong. WordPiece is BERT's, which always has them;
// other files must say so.
Status check_encoder_says_special_tokens(const io::Metadata& metadata) {
  KVASIR_TRY(const auto kind, metadata.find_string("tokenizer.ggml.model"));
  if (!kind || *kind == "bert" || *kind == "none" || *kind == "no_vocab") return {};
  for (const char* key : {"add_bos_token", "add_eos_token", "add_sep_token"}) {
    if (metadata.find(std::string("tokenizer.ggml.") + key) != nullptr) return {};
  }
  return make_error(ErrorKind::kBadFile,
                    "metadata tokenizer.ggml.add_bos_token: missing, as is add_eos_token, so nobody knows whether the "
                    "encoder was trained with them; --add-special-tokens yes (or no) says so");
}

}  // namespace kvasir
