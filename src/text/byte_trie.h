// Finds the texts of a set that are prefixes of a place in a text.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace kvasir::text {

// A trie over bytes whose children of one node lie side by side, sorted.
//
// Thread safety: immutable.
class ByteTrie {
 public:
  static constexpr std::int32_t kNone = -1;

  ByteTrie() : ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>>()) {}
  // Texts and their values (>= 0); empty texts are left out, and of equal texts the last one counts.
  explicit ByteTrie(std::vector<std::pair<std::string_view, std::int32_t>> texts) {
    std::ranges::stable_sort(texts, {}, &std::pair<std::string_view, std::int32_t>::first);
    nodes_.push_back({});
    bytes_.push_back(0);
    std::vector<Range> pending = {{0, texts.size(), 0, 0}};
    for (std::size_t i = 0; i < pending.size(); ++i) add_children(texts, pending[i], pending);
    root_children_.fill(kNone);
    for (std::int32_t i = 0; i < nodes_[0].num_children; ++i) {
      root_children_[bytes_[static_cast<std::size_t>(nodes_[0].first_child + i)]] = nodes_[0].first_child + i;
    }
  }

  std::int32_t root() const { return 0; }
  // The node one byte further; kNone when no text goes on like this.
  std::int32_t child(std::int32_t node, char byte) const {
    const auto wanted = static_cast<unsigned char>(byte);
    if (node == 0) return root_children_[wanted];
    const Node& parent = nodes_[static_cast<std::size_t>(node)];
    const auto begin = bytes_.begin() + parent.first_child;
    const auto end = begin + parent.num_children;
    const auto found = std::lower_bound(begin, end, wanted);
    return found == end || *found != wanted ? kNone : static_cast<std::int32_t>(found - bytes_.begin());
  }
  // The value of the text that ends here; kNone when none does.
  std::int32_t value(std::int32_t node) const { return nodes_[static_cast<std::size_t>(node)].value; }

  // visit(std::size_t end, std::int32_t value) for each text that begins at `begin`, short ones first.
  template <class Visit>
  void for_each_prefix(std::string_view text, std::size_t begin, Visit visit) const {
    std::int32_t node = root();
    for (std::size_t at = begin; at < text.size(); ++at) {
      node = child(node, text[at]);
      if (node == kNone) return;
      if (value(node) != kNone) visit(at + 1, value(node));
    }
  }

 private:
  struct Node {
    std::int32_t first_child = 0;
    std::int32_t num_children = 0;
    std::int32_t value = kNone;
  };
  struct Range {  // texts that share their first `depth` bytes, and the node of these
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
    std::size_t node = 0;
  };

  void add_children(const std::vector<std::pair<std::string_view, std::int32_t>>& texts, Range range,
                    std::vector<Range>& pending) {
    for (; range.begin < range.end && texts[range.begin].first.size() == range.depth; ++range.begin) {
      if (range.depth > 0) nodes_[range.node].value = texts[range.begin].second;
    }
    nodes_[range.node].first_child = static_cast<std::int32_t>(nodes_.size());
    for (std::size_t begin = range.begin; begin < range.end;) {
      const char byte = texts[begin].first[range.depth];
      std::size_t end = begin;
      while (end < range.end && texts[end].first[range.depth] == byte) ++end;
      pending.push_back({begin, end, range.depth + 1, nodes_.size()});
      nodes_.push_back({});
      bytes_.push_back(static_cast<unsigned char>(byte));
      ++nodes_[range.node].num_children;
      begin = end;
    }
  }

  std::vector<Node> nodes_;
  std::vector<unsigned char> bytes_;  // that leads to each node
  std::array<std::int32_t, 256> root_children_{};
};

}  // namespace kvasir::text
