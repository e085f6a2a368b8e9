// SentencePiece BPE (Llama 2, Mistral, Gemma): characters, merged by the score of what they become.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/pair_merger.h"
#include "text/vocab.h"

namespace kvasir::text {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581 stands for a space in tokens

// Thread safety: immutable. Invariant: the vocabulary outlives the model and does not move.
class SpmModel {
 public:
  explicit SpmModel(const Vocab& vocab);

  // Appends the ids of a text without special tokens. Any bytes are accepted: what is no token becomes
  // byte tokens, and the unknown token where the vocabulary has none for a byte.
  void encode(std::string_view text, bool add_space_prefix, std::vector<TokenId>& ids) const;

 private:
  void encode_segment(std::string_view segment, PairMerger& merger, std::vector<TokenId>& ids) const;
  std::optional<Merge> find_merge(std::string_view bytes) const;

  const Vocab& vocab_;
  std::array<TokenId, 256> byte_tokens_{};
};

}  // namespace kvasir::text
