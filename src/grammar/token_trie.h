// Texts of tokens as a tree, for walks that skip what cannot follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/regex/byte_set.h"
#include "grammar/regex/character_classes.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

// The bytes of each token. Thread safety: immutable.
class TokenTexts {
 public:
  explicit TokenTexts(std::span<const std::string_view> tokens);

  std::int32_t size() const { return static_cast<std::int32_t>(begins_.size()) - 1; }
  std::string_view operator[](TokenId token) const {
    const auto id = static_cast<std::size_t>(token);
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }

 private:
  std::string bytes_;
  std::vector<std::size_t> begins_;  // one more than there are tokens
};

// Nodes in depth-first order: node 0 is the root, the first child of a node is the next node, and skip() is the first
// node behind its subtree. Several entries may have the same text.
//
// Thread safety: immutable.
class TokenTrie {
 public:
  using NodeId = std::uint32_t;

  // The text of a token from `offset` on.
  struct Entry {
    TokenId token = kNoToken;
    std::uint32_t offset = 0;
  };
  // The children of a node that has many: places in children() by bytes.
  struct Fan {
    ByteSet bytes;
    std::uint32_t first = 0;
  };

  // In any order. Requires: no entry's text is empty. `texts` is used during the call only.
  TokenTrie(const TokenTexts& texts, std::vector<Entry> entries);

  NodeId num_nodes() const { return static_cast<NodeId>(nodes_.size()) - 1; }
  unsigned char byte(NodeId node) const { return nodes_[node].byte; }
  std::size_t depth(NodeId node) const { return nodes_[node].depth; }  // bytes up to and with this node
  NodeId skip(NodeId node) const { return nodes_[node].skip; }
  bool has_children(NodeId node) const { return nodes_[node].skip > node + 1; }
  const ByteSet& first_bytes() const { return first_bytes_; }

  // The child with this byte; kNoNode: there is none.
  static constexpr NodeId kNoNode = 0;  // the root, which is nobody's child
  NodeId child(NodeId node, unsigned char byte) const {
    if (const Fan* fan = this->fan(node)) return fan->bytes.test(byte) ? fan_child(*fan, byte) : kNoNode;
    for (NodeId next = node + 1; next < skip(node); next = skip(next)) {
      if (nodes_[next].byte == byte) return next;
    }
    return kNoNode;
  }

  std::span<const Entry> entries_at(NodeId node) const { return between(node, node + 1); }
  std::span<const Entry> entries_below(NodeId node) const { return between(node + 1, nodes_[node].skip); }
  std::span<const Entry> entries_within(NodeId node) const { return between(node, nodes_[node].skip); }  // both

  // Null for a node of few children.
  const Fan* fan(NodeId node) const {
    return nodes_[node].fan == kNoFan ? nullptr : &fans_[nodes_[node].fan];
  }
  NodeId fan_child(const Fan& fan, unsigned char byte) const {
    return fan_children_[fan.first + fan.bytes.count_below(byte)];
  }

  // The classes of all characters from the node's own byte to the ends of its entries; kBrokenCharacter with them
  // where those are no whole characters.
  CharacterClasses classes_from(NodeId node) const { return classes_[nodes_[node].classes]; }
  // The most characters from the node's own byte to the end of an entry; 255 for more.
  std::uint32_t characters_from(NodeId node) const { return nodes_[node].num_characters; }

  std::size_t size_bytes() const;

 private:
  static constexpr std::uint32_t kNoFan = 0xFFFFFFFF;

  struct Node {
    NodeId skip = 0;
    std::uint32_t first_entry = 0;
    std::uint32_t classes = 0;  // place in classes_
    std::uint32_t fan = kNoFan;
    std::uint16_t depth = 0;
    std::uint8_t byte = 0;
    std::uint8_t num_characters = 0;
  };

  std::span<const Entry> between(NodeId begin, NodeId end) const {
    return std::span(entries_).subspan(nodes_[begin].first_entry, nodes_[end].first_entry - nodes_[begin].first_entry);
  }
  void add_nodes(const TokenTexts& texts, std::vector<CharacterClasses>& classes);
  void set_classes(std::span<const CharacterClasses> classes);
  void add_fans();

  std::vector<Entry> entries_;  // by text
  std::vector<Node> nodes_;     // one more behind the last
  std::vector<CharacterClasses> classes_;
  std::vector<Fan> fans_;
  std::vector<NodeId> fan_children_;
  ByteSet first_bytes_;
};

}  // namespace kvasir::grammar
