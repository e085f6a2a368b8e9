// Byte-level BPE (GPT-2, Llama 3, Qwen): words of bytes, merged in the order of a list of merges.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/merge_table.h"
#include "text/pair_merger.h"
#include "text/pretokenizer.h"
#include "text/vocab.h"

namespace kvasir::text {

// A piece is a token, or a byte string that only merges know: a byte without a token, or an intermediate
// that the vocabulary lacks.
//
// Thread safety: immutable.
class BpeModel {
 public:
  // kBadFile when there are no merges or one has no space.
  static Result<BpeModel> create(const Vocab& vocab, std::span<const std::string> merges,
                                 Pretokenizer pretokenizer);

  // Appends the ids of a text without special tokens. Bytes that are not well-formed UTF-8 are taken for
  // U+FFFD each; bytes that the vocabulary cannot express are left out.
  void encode(std::string_view text, std::vector<TokenId>& ids) const;

  bool adds_bos() const { return pretokenizer_.adds_bos(); }

 private:
  BpeModel(const Vocab& vocab, std::size_t num_merges, Pretokenizer pretokenizer);
  std::int32_t add_piece(std::string bytes);
  Status add_merges(std::span<const std::string> merges);
  void encode_word(std::string_view word, PairMerger& merger, std::vector<TokenId>& ids) const;

  Pretokenizer pretokenizer_;
  std::int32_t num_tokens_ = 0;
  std::unordered_map<std::string, std::int32_t> pieces_;  // by their bytes
  std::vector<std::string> extra_pieces_;                 // bytes of piece num_tokens_ + i
  std::array<std::int32_t, 256> byte_pieces_{};
  MergeTable merges_;
};

}  // namespace kvasir::text
