#include "text/special_matcher.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"
#include "text/character.h"

namespace kvasir::text {
namespace {

// The character that ends at this position of any bytes; nothing when they are no character.
Character character_before(std::string_view text, std::size_t position) {
  std::size_t begin = position;
  while (begin > 0 && position - begin < 4) {
    --begin;
    const std::string_view bytes = text.substr(begin, position - begin);
    if (const Utf8Prefix prefix = utf8_prefix(bytes); prefix.valid) {
      return static_cast<std::size_t>(prefix.num_bytes) == bytes.size() ? character_at(bytes, 0)
                                                                        : Character{};
    }
  }
  return {};
}

Character character_behind(std::string_view text, std::size_t position) {
  if (position >= text.size() || !utf8_prefix(text.substr(position)).valid) return {};
  return character_at(text, position);
}

bool is_word_part(const Character& c) {
  return c.is_letter() || c.is_number() || c.is_mark() || (c.size_bytes > 0 && c.code_point == '_');
}

std::size_t spaces_begin(std::string_view text, std::size_t end) {
  for (Character c = character_before(text, end); c.is(CharClass::kWhitespace);
       c = character_before(text, end)) {
    end -= c.size_bytes;
  }
  return end;
}

std::size_t spaces_end(std::string_view text, std::size_t begin) {
  for (Character c = character_behind(text, begin); c.is(CharClass::kWhitespace);
       c = character_behind(text, begin)) {
    begin += c.size_bytes;
  }
  return begin;
}

bool is_inside_word(std::string_view text, std::size_t begin, std::size_t end) {
  return is_word_part(character_before(text, begin)) || is_word_part(character_behind(text, end));
}

}  // namespace

std::vector<SpecialToken> special_tokens_of(const Vocab& vocab, const std::vector<TokenId>& ids) {
  std::vector<SpecialToken> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    tokens.push_back({.id = id, .text = std::string(vocab.text(id)), .is_hidden = vocab.is_hidden(id)});
  }
  return tokens;
}

std::vector<SpecialToken> special_tokens_in(const Vocab& vocab) {
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    if (vocab.is_special(id)) ids.push_back(id);
  }
  return special_tokens_of(vocab, ids);
}

SpecialMatcher::SpecialMatcher(std::vector<SpecialToken> tokens) : nodes_(1) {
  first_node_.fill(kNone);
  std::erase_if(tokens, [](const SpecialToken& token) { return token.text.empty(); });
  std::ranges::sort(tokens, [](const SpecialToken& a, const SpecialToken& b) {
    return a.text.size() != b.text.size() ? a.text.size() > b.text.size() : a.id < b.id;
  });
  // Shortest first, so that a token's prefixes are already in the trie when it arrives.
  tokens_.resize(tokens.size());
  for (std::size_t rank = tokens.size(); rank-- > 0;) {
    const SpecialToken& token = tokens[rank];
    tokens_[rank] = {token.id,         token.text.size(), longest_match(token.text, 0),
                     token.is_hidden,  token.strips_left, token.strips_right,
                     token.single_word};
    insert(token.text, static_cast<std::int32_t>(rank));
  }
}

void SpecialMatcher::insert(std::string_view token, std::int32_t rank) {
  std::int32_t node = 0;
  for (const char byte : token) {
    std::int32_t next = child(node, byte);
    if (next == kNone) {
      next = static_cast<std::int32_t>(nodes_.size());
      nodes_.push_back({.byte = byte, .next_sibling = nodes_[static_cast<std::size_t>(node)].first_child});
      nodes_[static_cast<std::size_t>(node)].first_child = next;
      if (node == 0) first_node_[static_cast<unsigned char>(byte)] = next;
    }
    node = next;
    if (tokens_[static_cast<std::size_t>(rank)].is_hidden)
      nodes_[static_cast<std::size_t>(node)].leads_to_hidden = true;
  }
  nodes_[static_cast<std::size_t>(node)].rank = rank;
}

std::int32_t SpecialMatcher::child(std::int32_t node, char byte) const {
  if (node == 0) return first_node_[static_cast<unsigned char>(byte)];
  std::int32_t next = nodes_[static_cast<std::size_t>(node)].first_child;
  while (next != kNone && nodes_[static_cast<std::size_t>(next)].byte != byte) {
    next = nodes_[static_cast<std::size_t>(next)].next_sibling;
  }
  return next;
}

// The rank of the longest token at this position, kNone when there is none.
std::int32_t SpecialMatcher::longest_match(std::string_view text, std::size_t position) const {
  std::int32_t rank = kNone;
  std::int32_t node = 0;
  for (; position < text.size(); ++position) {
    node = child(node, text[position]);
    if (node == kNone) break;
    if (nodes_[static_cast<std::size_t>(node)].rank != kNone)
      rank = nodes_[static_cast<std::size_t>(node)].rank;
  }
  return rank;
}

// This token or the longest one it starts with that is not hidden; kNone when all are.
std::int32_t SpecialMatcher::longest_visible(std::int32_t rank) const {
  while (rank != kNone && tokens_[static_cast<std::size_t>(rank)].is_hidden) {
    rank = tokens_[static_cast<std::size_t>(rank)].shorter_rank;
  }
  return rank;
}

// Whether a hidden token matches here, or the text ends (after trimming) before that is decided.
bool SpecialMatcher::may_start_hidden(std::string_view text, std::size_t position,
                                      std::size_t trimmed_end) const {
  std::int32_t node = 0;
  for (const std::size_t begin = position; position < text.size(); ++position) {
    if (position > begin && position == trimmed_end) return true;
    node = child(node, text[position]);
    if (node == kNone || !nodes_[static_cast<std::size_t>(node)].leads_to_hidden) return false;
    const std::int32_t rank = nodes_[static_cast<std::size_t>(node)].rank;
    if (rank != kNone && tokens_[static_cast<std::size_t>(rank)].is_hidden) return true;
  }
  return true;
}

std::vector<std::size_t> SpecialMatcher::hidden_starts(std::string_view text) const {
  const std::size_t last = text.find_last_not_of(" \t\r\n\v\f");
  const std::size_t trimmed_end = last == std::string_view::npos ? 0 : last + 1;
  std::vector<std::size_t> starts;
  for (std::size_t position = 0; position < trimmed_end; ++position) {
    if (may_start_hidden(text, position, trimmed_end)) starts.push_back(position);
  }
  return starts;
}

std::vector<Fragment> SpecialMatcher::split(std::string_view text,
                                            std::span<const std::size_t> plain_at) const {
  std::vector<Fragment> fragments;
  std::size_t plain_begin = 0;
  for (std::size_t position = 0; position < text.size();) {
    std::int32_t rank = longest_match(text, position);
    if (rank != kNone && std::ranges::binary_search(plain_at, position)) rank = longest_visible(rank);
    if (rank == kNone) {
      ++position;
      continue;
    }
    const Token& token = tokens_[static_cast<std::size_t>(rank)];
    std::size_t end = position + token.size_bytes;
    if (token.single_word && is_inside_word(text, position, end)) {
      position = end;
      continue;
    }
    const std::size_t begin = token.strips_left ? std::max(plain_begin, spaces_begin(text, position))
                                                : position;
    if (token.strips_right) end = spaces_end(text, end);
    if (begin > plain_begin) fragments.push_back({text.substr(plain_begin, begin - plain_begin)});
    fragments.push_back({text.substr(begin, end - begin), token.id});
    position = plain_begin = end;
  }
  if (plain_begin < text.size()) fragments.push_back({text.substr(plain_begin)});
  return fragments;
}

}  // namespace kvasir::text
