#include "text/bpe.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/utf8.h"
#include "text/byte_alphabet.h"

namespace kvasir::text {
namespace {

// Symbols count bytes in 32 bits: a longer word, which only a hostile text has, is cut here.
constexpr std::size_t kMaxWordBytes = std::size_t{1} << 30;

// One U+FFFD for every byte, as llama.cpp counts them, where to_valid_utf8 has one for several.
std::string replace_invalid_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto [num_bytes, valid] = utf8_prefix(bytes);
    const auto size_bytes = static_cast<std::size_t>(num_bytes);
    if (valid) text += bytes.substr(0, size_bytes);
    for (std::size_t i = 0; i < size_bytes && !valid; ++i) text += kReplacementCharacter;
    bytes.remove_prefix(size_bytes);
  }
  return text;
}

}  // namespace

Result<BpeModel> BpeModel::create(const Vocab& vocab, std::span<const std::string> merges,
                                  Pretokenizer pretokenizer) {
  if (merges.empty() || merges.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("tokenizer.ggml.merges has {} entries (a gpt2 tokenizer needs some)", merges.size()));
  }
  BpeModel model(vocab, merges.size(), pretokenizer);
  KVASIR_CHECKED(model.add_merges(merges));
  return model;
}

BpeModel::BpeModel(const Vocab& vocab, std::size_t num_merges, Pretokenizer pretokenizer)
    : pretokenizer_(pretokenizer), num_tokens_(vocab.num_tokens()), merges_(num_merges) {
  pieces_.reserve(static_cast<std::size_t>(num_tokens_));
  for (TokenId id = 0; id < num_tokens_; ++id) {
    if (std::optional<std::string> bytes = decode_byte_alphabet(vocab.text(id)))
      pieces_.emplace(*std::move(bytes), id);
  }
  for (std::size_t byte = 0; byte < byte_pieces_.size(); ++byte) {
    byte_pieces_[byte] = add_piece(std::string(1, static_cast<char>(byte)));
  }
}

// The piece with these bytes, a new one if need be.
std::int32_t BpeModel::add_piece(std::string bytes) {
  const auto next_piece = num_tokens_ + static_cast<std::int32_t>(extra_pieces_.size());
  const auto [entry, is_new] = pieces_.emplace(std::move(bytes), next_piece);
  if (is_new) extra_pieces_.push_back(entry->first);
  return entry->second;
}

Status BpeModel::add_merges(std::span<const std::string> merges) {
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const std::size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("tokenizer.ggml.merges[{}] is '{}', which is not two parts and a space",
                                    rank, printable(merge)));
    }
    const std::optional<std::string> left = decode_byte_alphabet(merge.substr(0, space));
    const std::optional<std::string> right = decode_byte_alphabet(merge.substr(space + 1));
    if (!left || !right) continue;  // no bytes are ever written like this
    merges_.insert(add_piece(*left), add_piece(*right),
                   {.priority = static_cast<std::uint32_t>(rank), .piece = add_piece(*left + *right)});
  }
  return {};
}

void BpeModel::encode(std::string_view text, std::vector<TokenId>& ids) const {
  std::string repaired;
  if (!simdjson::validate_utf8(text)) {
    repaired = replace_invalid_bytes(text);
    text = repaired;
  }
  PairMerger merger;
  pretokenizer_.for_each_word(text, [&](std::string_view word) {
    for (std::size_t begin = 0; begin < word.size(); begin += kMaxWordBytes) {
      encode_word(word.substr(begin, kMaxWordBytes), merger, ids);
    }
  });
}

void BpeModel::encode_word(std::string_view word, PairMerger& merger, std::vector<TokenId>& ids) const {
  if (pretokenizer_.keeps_known_words()) {
    const auto known = pieces_.find(std::string(word));
    if (known != pieces_.end() && known->second < num_tokens_) {
      ids.push_back(known->second);
      return;
    }
  }
  merger.clear();
  for (std::size_t i = 0; i < word.size(); ++i) {
    merger.add_symbol(static_cast<std::uint32_t>(i), 1, byte_pieces_[static_cast<unsigned char>(word[i])]);
  }
  merger.merge(
      [this](const Symbol& left, const Symbol& right) { return merges_.find(left.piece, right.piece); });
  merger.for_each([&](const Symbol& symbol) {
    if (symbol.piece < num_tokens_) {
      ids.push_back(symbol.piece);
      return;
    }
    for (const char byte : extra_pieces_[static_cast<std::size_t>(symbol.piece - num_tokens_)]) {
      const std::int32_t piece = byte_pieces_[static_cast<unsigned char>(byte)];
      if (piece < num_tokens_) ids.push_back(piece);
    }
  });
}

}  // namespace kvasir::text
