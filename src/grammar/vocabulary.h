// The tokens of a model as bytes, arranged so that a grammar finds those that it allows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/regex/character_classes.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// A trie of all tokens with text, its nodes in depth-first order: node 0 is the root, the first child of a node is the
// next node, and skip() is the first node behind its subtree. Several tokens may have the same bytes.
//
// Thread safety: immutable.
class Vocabulary {
 public:
  using NodeId = std::uint32_t;

  // tokens[id]: the bytes that a client sees of a token; empty for one without text (a control token).
  explicit Vocabulary(std::span<const std::string_view> tokens);

  std::int32_t num_tokens() const { return static_cast<std::int32_t>(begins_.size()) - 1; }
  std::string_view text(TokenId token) const;
  std::size_t longest_token_bytes() const { return longest_token_bytes_; }

  NodeId num_nodes() const { return static_cast<NodeId>(nodes_.size()) - 1; }
  unsigned char byte(NodeId node) const { return nodes_[node].byte; }
  std::size_t depth(NodeId node) const { return nodes_[node].depth; }  // bytes up to and with this node
  NodeId skip(NodeId node) const { return nodes_[node].skip; }
  bool has_children(NodeId node) const { return nodes_[node].skip > node + 1; }
  // The tokens that end at the node, as a range of places in the order of their bytes.
  std::pair<std::uint32_t, std::uint32_t> range_at(NodeId node) const { return between(node, node + 1); }
  // .. and below it.
  std::pair<std::uint32_t, std::uint32_t> range_within(NodeId node) const {
    return between(node, nodes_[node].skip);
  }
  std::span<const TokenId> ordered(std::uint32_t begin, std::uint32_t end) const {
    return std::span(ordered_).subspan(begin, end - begin);
  }
  // The classes of all characters of the tokens that end at the node or below, the node's own bytes included;
  // kBrokenCharacter with them where a token is no whole number of characters.
  CharacterClasses classes_within(NodeId node) const { return nodes_[node].classes; }

  // Adds every token whose characters all are of these classes.
  void add_tokens_of(CharacterClasses classes, TokenMask& mask) const;

  // Which bytes are tokens of their own; a text that needs another one cannot be written.
  bool has_byte_token(unsigned char byte) const { return has_byte_token_[byte]; }

 private:
  struct Node {
    std::uint8_t byte = 0;
    std::uint16_t depth = 0;
    NodeId skip = 0;
    std::uint32_t first_token = 0;  // in ordered_
    CharacterClasses classes = 0;
  };
  struct Group {  // tokens with the same classes
    CharacterClasses classes = 0;
    std::vector<TokenId> tokens;
    TokenMask mask;  // of large groups
  };

  std::pair<std::uint32_t, std::uint32_t> between(NodeId begin, NodeId end) const {
    return {nodes_[begin].first_token, nodes_[end].first_token};
  }
  void add_nodes();
  void add_groups();

  std::string bytes_;
  std::vector<std::size_t> begins_;  // num_tokens + 1 places in bytes_
  std::vector<TokenId> ordered_;     // tokens with text, by bytes
  std::vector<Node> nodes_;          // one more behind the last
  std::vector<Group> groups_;
  std::size_t longest_token_bytes_ = 0;
  std::array<bool, 256> has_byte_token_ = {};
};

}  // namespace kvasir::grammar
