#include "text/character_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>

#include "base/code_point.h"
#include "base/printable.h"
#include "text/byte_tokens.h"

namespace kvasir::text {
namespace {

// Symbols count bytes in 32 bits: a longer word is cut here, at a character.
constexpr std::size_t kMaxBpeBytes = std::size_t{1} << 30;

std::size_t segment_size(std::string_view word) {
  std::size_t size = std::min(word.size(), kMaxBpeBytes);
  while (size < word.size() && (static_cast<unsigned char>(word[size]) & 0xC0) == 0x80) --size;
  return size;
}

}  // namespace

Result<std::unique_ptr<const WordModel>> CharacterBpeModel::create(
    ModelVocab vocab, std::span<const std::pair<std::string, std::string>> merges,
    CharacterBpeOptions options) {
  if (merges.size() >= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("the tokenizer has {} merges, too many", merges.size()));
  }
  auto model = std::unique_ptr<CharacterBpeModel>(
      new CharacterBpeModel(std::move(vocab), merges.size(), std::move(options)));
  KVASIR_CHECKED(model->add_merges(merges));
  return model;
}

CharacterBpeModel::CharacterBpeModel(ModelVocab vocab, std::size_t num_merges, CharacterBpeOptions options)
    : vocab_(std::move(vocab)), options_(std::move(options)), merges_(num_merges) {
  if (options_.byte_fallback) byte_tokens_ = find_byte_tokens(vocab_.vocab());
}

Status CharacterBpeModel::add_merges(std::span<const std::pair<std::string, std::string>> merges) {
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [left, right] = merges[rank];
    std::string_view tail = right;
    if (tail.starts_with(options_.continuing_prefix)) tail.remove_prefix(options_.continuing_prefix.size());
    const std::string merged = left + std::string(tail);
    const TokenId ids[] = {vocab_.find(left), vocab_.find(right), vocab_.find(merged)};
    const std::string_view texts[] = {left, right, merged};
    const auto* const missing = std::ranges::find(ids, kNoToken);
    if (missing == std::end(ids)) {
      merges_.insert(ids[0], ids[1], {.priority = static_cast<std::uint32_t>(rank), .piece = ids[2]});
    } else if (!options_.skips_unknown_merges) {
      return make_error(ErrorKind::kBadFile, fmt::format("merge {} has '{}', which is no token", rank,
                                                         printable(texts[missing - std::begin(ids)])));
    }
  }
  return {};
}

void CharacterBpeModel::encode(std::string_view word, std::vector<TokenId>& ids) const {
  const bool is_whole = options_.keeps_known_words ||
                        (options_.keeps_known_breaks &&
                         word.find_first_not_of('\n') == std::string_view::npos);
  if (const TokenId known = is_whole ? vocab_.find(word) : kNoToken; known != kNoToken) {
    ids.push_back(known);
    return;
  }
  while (!word.empty()) {
    const std::size_t size = segment_size(word);
    encode_segment(word.substr(0, size), ids);
    word.remove_prefix(size);
  }
}

TokenId CharacterBpeModel::find_character(std::string_view character, bool is_first, bool is_last) const {
  const bool has_prefix = !is_first && !options_.continuing_prefix.empty();
  const bool has_suffix = is_last && !options_.end_of_word_suffix.empty();
  if (!has_prefix && !has_suffix) return vocab_.find(character);
  std::string text = has_prefix ? options_.continuing_prefix : std::string();
  text += character;
  if (has_suffix) text += options_.end_of_word_suffix;
  return vocab_.find(text);
}

std::vector<TokenId> CharacterBpeModel::symbols_of(std::string_view word) const {
  std::vector<TokenId> symbols;
  symbols.reserve(word.size());
  bool is_pending = false;  // an unknown token that more unknown characters may join
  const auto flush = [&] {
    if (is_pending) symbols.push_back(options_.unknown);
    is_pending = false;
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::string_view character = word.substr(begin, code_point_at(word, begin).size_bytes);
    const std::size_t end = begin + character.size();
    const TokenId id = find_character(character, begin == 0, end == word.size());
    if (id != kNoToken) {
      flush();
      symbols.push_back(id);
    } else if (!append_byte_tokens(byte_tokens_, character, symbols) && options_.unknown != kNoToken) {
      if (!options_.fuse_unknown) flush();
      is_pending = true;
    }
    begin = end;
  }
  flush();
  return symbols;
}

void CharacterBpeModel::encode_segment(std::string_view word, std::vector<TokenId>& ids) const {
  PairMerger merger;
  const std::vector<TokenId> symbols = symbols_of(word);
  for (const TokenId symbol : symbols) merger.add_symbol(0, 0, symbol);
  merger.merge(
      [this](const Symbol& left, const Symbol& right) { return merges_.find(left.piece, right.piece); });
  merger.for_each([&](const Symbol& symbol) { ids.push_back(symbol.piece); });
}

}  // namespace kvasir::text
