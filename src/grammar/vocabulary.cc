#include "grammar/vocabulary.h"

#include <algorithm>
#include <map>

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMinMaskedTokens = 256;  // of a group that has a mask of its own

}  // namespace

Vocabulary::Vocabulary(std::span<const std::string_view> tokens) {
  begins_.reserve(tokens.size() + 1);
  begins_.push_back(0);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    bytes_ += tokens[id];
    begins_.push_back(bytes_.size());
    if (tokens[id].empty()) continue;
    ordered_.push_back(static_cast<TokenId>(id));
    longest_token_bytes_ = std::max(longest_token_bytes_, tokens[id].size());
    if (tokens[id].size() == 1) has_byte_token_[static_cast<unsigned char>(tokens[id][0])] = true;
  }
  const auto by_bytes = [&](TokenId a, TokenId b) {
    const int order = text(a).compare(text(b));
    return order != 0 ? order < 0 : a < b;
  };
  std::ranges::sort(ordered_, by_bytes);
  add_nodes();
  add_groups();
}

std::string_view Vocabulary::text(TokenId token) const {
  const auto id = static_cast<std::size_t>(token);
  return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
}

void Vocabulary::add_nodes() {
  std::vector<NodeId> path = {0};  // the nodes that the last token passes
  nodes_.push_back({});
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) nodes_[path.back()].skip = static_cast<NodeId>(nodes_.size());
  };
  for (std::uint32_t i = 0; i < ordered_.size(); ++i) {
    const std::string_view bytes = text(ordered_[i]);
    const auto shared = std::ranges::mismatch(bytes, last).in1 - bytes.begin();
    close(static_cast<std::size_t>(shared));
    for (std::size_t depth = path.size() - 1; depth < bytes.size(); ++depth) {
      path.push_back(static_cast<NodeId>(nodes_.size()));
      nodes_.push_back({.byte = static_cast<std::uint8_t>(bytes[depth]),
                        .depth = static_cast<std::uint16_t>(depth + 1),
                        .first_token = i});
    }
    const CharacterClasses classes = character_classes(bytes);
    for (const NodeId node : path) nodes_[node].classes |= classes;
    last = bytes;
  }
  close(0);
  nodes_[0].skip = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({.skip = static_cast<NodeId>(nodes_.size()) + 1,
                    .first_token = static_cast<std::uint32_t>(ordered_.size())});
}

void Vocabulary::add_groups() {
  std::map<CharacterClasses, std::vector<TokenId>> by_classes;
  for (const TokenId token : ordered_) {
    const CharacterClasses classes = character_classes(text(token));
    if ((classes & kBrokenCharacter) == 0) by_classes[classes].push_back(token);
  }
  for (auto& [classes, tokens] : by_classes) {
    Group group = {.classes = classes, .tokens = std::move(tokens), .mask = {}};
    if (group.tokens.size() >= kMinMaskedTokens) {
      group.mask = TokenMask(num_tokens());
      for (const TokenId token : group.tokens) group.mask.set(token);
      group.tokens = {};
    }
    groups_.push_back(std::move(group));
  }
}

void Vocabulary::add_tokens_of(CharacterClasses classes, TokenMask& mask) const {
  for (const Group& group : groups_) {
    if ((group.classes & ~classes) != 0) continue;
    if (group.mask.num_tokens() > 0) {
      mask.add(group.mask);
    } else {
      for (const TokenId token : group.tokens) mask.set(token);
    }
  }
}

}  // namespace kvasir::grammar
