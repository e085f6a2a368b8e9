#include "grammar/vocabulary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/utf8.h"

namespace kvasir::grammar {
namespace {

std::uint32_t num_characters_of(std::string_view text) {
  std::uint32_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(static_cast<std::size_t>(utf8_prefix(text).num_bytes));
  return count;
}

}  // namespace

std::vector<TokenTrie::Entry> Vocabulary::entries_of(const TokenTexts& texts) {
  std::vector<TokenTrie::Entry> entries;
  for (TokenId token = 0; token < texts.size(); ++token) {
    if (!texts[token].empty() && texts[token].size() <= kMaxTokenBytes) entries.push_back({token, 0});
  }
  return entries;
}

Vocabulary::Vocabulary(std::span<const std::string_view> tokens, std::size_t atlas_bytes)
    : texts_(tokens), trie_(texts_, entries_of(texts_)), atlas_(std::make_unique<Atlas>(atlas_bytes)) {
  auto whole = std::make_shared<Remainders>();
  whole->tops = {0};
  whole->first_bytes = trie_.first_bytes();
  whole_ = std::move(whole);
  for (TokenId token = 0; token < num_tokens(); ++token) {
    const std::string_view bytes = text(token);
    if (bytes.size() == 1) has_byte_token_[static_cast<unsigned char>(bytes[0])] = true;
  }
  add_groups();
}

Vocabulary::Vocabulary(std::span<const std::string_view> tokens, std::span<const std::string_view> first_tokens,
                       bool is_start_behind_special, std::size_t atlas_bytes)
    : Vocabulary(tokens, atlas_bytes) {
  if (std::ranges::equal(tokens, first_tokens)) return;
  at_text_start_ = std::make_unique<const Vocabulary>(first_tokens, atlas_bytes);
  is_start_behind_special_ = is_start_behind_special;
  for (TokenId token = 0; token < num_tokens(); ++token) {
    if (!text(token).empty() && at_text_start_->text(token).empty()) silent_at_start_.push_back(token);
  }
}

void Vocabulary::add_groups() {
  std::map<std::pair<CharacterClasses, std::uint32_t>, std::vector<TokenId>> by_kind;
  for (TokenId token = 0; token < num_tokens(); ++token) {
    const std::string_view bytes = text(token);
    if (bytes.empty()) continue;
    const CharacterClasses classes = character_classes(bytes);
    const std::uint32_t num_characters = num_characters_of(bytes);
    longest_token_characters_ = std::max(longest_token_characters_, num_characters);
    if ((classes & kBrokenCharacter) == 0) by_kind[{classes, num_characters}].push_back(token);
  }
  const std::size_t min_masked_tokens = static_cast<std::size_t>(num_tokens()) / 64 + 1;  // as long as a mask
  for (auto& [kind, tokens] : by_kind) {
    Group group = {.classes = kind.first, .num_characters = kind.second, .tokens = std::move(tokens), .mask = {}};
    if (group.tokens.size() >= min_masked_tokens) {
      group.mask = TokenMask(num_tokens());
      for (const TokenId token : group.tokens) group.mask.set(token);
      group.tokens = {};
    }
    groups_.push_back(std::move(group));
  }
}

void Vocabulary::add_tokens_of(CharacterClasses classes, std::uint32_t num_characters, TokenMask& mask) const {
  for (const Group& group : groups_) {
    if ((group.classes & ~classes) != 0 || group.num_characters > num_characters) continue;
    if (group.mask.num_tokens() > 0) {
      mask.add(group.mask);
    } else {
      for (const TokenId token : group.tokens) mask.set(token);
    }
  }
}

}  // namespace kvasir::grammar
