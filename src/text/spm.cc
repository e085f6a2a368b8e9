#include "text/spm.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace kvasir::text {
namespace {

// Symbols count bytes in 32 bits: a longer text is cut here.
constexpr std::size_t kMaxSegmentBytes = std::size_t{1} << 30;

// The size that a lead byte announces. SentencePiece does not check the bytes that follow, so neither do we.
std::size_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0xC0) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

// Maps scores to priorities that order the other way round: the highest score is the lowest number.
// Positive floats order like their bits, negative ones the opposite way.
std::uint32_t priority_of(float score) {
  constexpr std::uint32_t kSign = 0x80000000;
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);  // -0 becomes +0
  const std::uint32_t ascending = (bits & kSign) != 0 ? ~bits : bits | kSign;
  return ~ascending;  // never kNoPriority, which only a NaN would give
}

std::string escape_spaces(std::string_view text, bool add_space_prefix) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
  if (add_space_prefix) escaped += kSpaceMark;
  for (const char byte : text) {
    if (byte == ' ') {
      escaped += kSpaceMark;
    } else {
      escaped.push_back(byte);
    }
  }
  return escaped;
}

}  // namespace

SpmModel::SpmModel(const Vocab& vocab) : vocab_(vocab) {
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    TokenId id = vocab.find(fmt::format("<0x{:02X}>", byte));
    if (id == kNoToken) id = vocab.find(std::string(1, static_cast<char>(byte)));
    byte_tokens_[byte] = id == kNoToken ? vocab.unknown() : id;
  }
}

void SpmModel::encode(std::string_view text, bool add_space_prefix, std::vector<TokenId>& ids) const {
  const std::string escaped = escape_spaces(text, add_space_prefix);
  PairMerger merger;
  for (std::size_t begin = 0; begin < escaped.size(); begin += kMaxSegmentBytes) {
    encode_segment(std::string_view(escaped).substr(begin, kMaxSegmentBytes), merger, ids);
  }
}

void SpmModel::encode_segment(std::string_view segment, PairMerger& merger, std::vector<TokenId>& ids) const {
  merger.clear();
  for (std::size_t begin = 0; begin < segment.size();) {
    const std::string_view character = segment.substr(begin, character_size(segment[begin]));
    merger.add_symbol(static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(character.size()),
                      vocab_.find(character));
    begin += character.size();
  }
  merger.merge([&](const Symbol& left, const Symbol& right) {
    return find_merge(segment.substr(left.begin, left.size_bytes + right.size_bytes));
  });
  merger.for_each([&](const Symbol& symbol) {
    if (symbol.piece != kNoToken) {
      ids.push_back(symbol.piece);
      return;
    }
    for (const char byte : segment.substr(symbol.begin, symbol.size_bytes)) {
      const TokenId id = byte_tokens_[static_cast<unsigned char>(byte)];
      if (id != kNoToken) ids.push_back(id);
    }
  });
}

std::optional<Merge> SpmModel::find_merge(std::string_view bytes) const {
  if (bytes.size() > vocab_.longest_token_bytes()) return std::nullopt;
  const TokenId id = vocab_.find(bytes);
  if (id == kNoToken) return std::nullopt;
  return Merge{.priority = priority_of(vocab_.score(id)), .piece = id};
}

}  // namespace kvasir::text
