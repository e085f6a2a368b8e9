#include "engine/vocab_metadata.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace kvasir {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

Status read_special_ids(const io::Metadata& metadata, text::VocabData& data) {
  const std::pair<const char*, TokenId*> ids[] = {
      {"bos_token_id", &data.bos},
      {"eos_token_id", &data.eos},
      {"eot_token_id", &data.eot},
      {"eom_token_id", &data.eom},
      {"unknown_token_id", &data.unknown},
      {"padding_token_id", &data.padding},
      {"fim_pad_token_id", &data.fim_padding},
      {"fim_rep_token_id", &data.fim_repository},
      {"fim_sep_token_id", &data.fim_separator},
  };
  for (const auto& [name, id] : ids) {
    KVASIR_TRY(const auto value, metadata.find_int(std::string("tokenizer.ggml.") + name, 0, kMaxId));
    if (value) *id = static_cast<TokenId>(*value);
  }
  KVASIR_TRY(data.add_bos, metadata.find_bool("tokenizer.ggml.add_bos_token"));
  KVASIR_TRY(data.add_eos, metadata.find_bool("tokenizer.ggml.add_eos_token"));
  KVASIR_TRY(data.add_space_prefix, metadata.find_bool("tokenizer.ggml.add_space_prefix"));
  return {};
}

Status read_token_lists(const io::Metadata& metadata, text::VocabData& data) {
  KVASIR_TRY(const auto* tokens, metadata.find_strings("tokenizer.ggml.tokens"));
  KVASIR_TRY(const auto* merges, metadata.find_strings("tokenizer.ggml.merges"));
  KVASIR_TRY(const auto* scores, metadata.find_floats("tokenizer.ggml.scores"));
  KVASIR_TRY(const auto* types, metadata.find_ints("tokenizer.ggml.token_type"));
  if (tokens != nullptr) data.tokens = *tokens;
  if (merges != nullptr) data.merges = *merges;
  if (scores != nullptr) data.scores.assign(scores->begin(), scores->end());
  if (types != nullptr) {
    data.token_types.reserve(types->size());
    for (std::int64_t type : *types) {
      if (type < 0 || type > kMaxId) {
        return make_error(
            ErrorKind::kBadFile,
            fmt::format("metadata tokenizer.ggml.token_type: must be at least 0, has {}", type));
      }
      data.token_types.push_back(static_cast<std::int32_t>(type));
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

}  // namespace kvasir
