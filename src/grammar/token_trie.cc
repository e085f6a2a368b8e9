#include "grammar/token_trie.h"

#include <algorithm>
#include <utility>

#include "base/code_point.h"
#include "base/utf8.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMinFan = 12;  // children of a node that has a table of them

// From each byte of a text to its end: the classes of the characters, and how many there are.
struct Suffixes {
  std::vector<CharacterClasses> classes;
  std::vector<std::uint8_t> num_characters;

  void assign(std::string_view text) {
    classes.assign(text.size() + 1, 0);
    num_characters.assign(text.size() + 1, 0);
    for (std::size_t at = text.size(); at-- > 0;) {
      const auto byte = static_cast<unsigned char>(text[at]);
      std::size_t size = 1;
      CharacterClasses own = character_class(byte);
      if (byte >= 0x80) {
        const Utf8Prefix prefix = utf8_prefix(text.substr(at));
        own = prefix.valid ? kBeyondAscii : kBrokenCharacter;
        if (prefix.valid) size = static_cast<std::size_t>(prefix.num_bytes);
      }
      classes[at] = own | classes[at + size];
      num_characters[at] = static_cast<std::uint8_t>(std::min(num_characters[at + size] + 1, 255));
    }
  }
};

}  // namespace

TokenTexts::TokenTexts(std::span<const std::string_view> tokens) {
  begins_.reserve(tokens.size() + 1);
  begins_.push_back(0);
  for (const std::string_view token : tokens) {
    bytes_ += token;
    begins_.push_back(bytes_.size());
  }
}

TokenTrie::TokenTrie(const TokenTexts& texts, std::vector<Entry> entries) : entries_(std::move(entries)) {
  const auto by_text = [&](const Entry& a, const Entry& b) {
    const int order = texts[a.token].substr(a.offset).compare(texts[b.token].substr(b.offset));
    return order != 0 ? order < 0 : a.token < b.token;
  };
  if (!std::ranges::is_sorted(entries_, by_text)) std::ranges::sort(entries_, by_text);
  std::vector<CharacterClasses> classes;
  add_nodes(texts, classes);
  set_classes(classes);
  add_fans();
}

void TokenTrie::add_nodes(const TokenTexts& texts, std::vector<CharacterClasses>& classes) {
  std::vector<NodeId> path = {0};  // the nodes that the last text passes
  nodes_.push_back({});
  classes.push_back(0);
  std::string_view last;
  Suffixes suffixes;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back()) nodes_[path.back()].skip = static_cast<NodeId>(nodes_.size());
  };
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    const std::string_view text = texts[entries_[i].token].substr(entries_[i].offset);
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(text, last).in1 - text.begin());
    close(shared);
    for (std::size_t depth = path.size() - 1; depth < text.size(); ++depth) {
      path.push_back(static_cast<NodeId>(nodes_.size()));
      nodes_.push_back({.first_entry = i,
                        .depth = static_cast<std::uint16_t>(depth + 1),
                        .byte = static_cast<std::uint8_t>(text[depth])});
      classes.push_back(0);
    }
    suffixes.assign(text);
    for (std::size_t depth = 1; depth < path.size(); ++depth) {
      classes[path[depth]] |= suffixes.classes[depth - 1];
      Node& node = nodes_[path[depth]];
      node.num_characters = std::max(node.num_characters, suffixes.num_characters[depth - 1]);
    }
    if (!text.empty()) first_bytes_.set(static_cast<unsigned char>(text[0]));
    last = text;
  }
  close(0);
  nodes_[0].skip = static_cast<NodeId>(nodes_.size());
  nodes_.push_back({.skip = static_cast<NodeId>(nodes_.size()) + 1,
                    .first_entry = static_cast<std::uint32_t>(entries_.size())});
  classes.push_back(0);
}

// There are few different sets.
void TokenTrie::set_classes(std::span<const CharacterClasses> classes) {
  std::unordered_map<CharacterClasses, std::uint32_t> places;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const auto [found, is_new] =
        places.try_emplace(classes[node], static_cast<std::uint32_t>(classes_.size()));
    if (is_new) classes_.push_back(classes[node]);
    nodes_[node].classes = found->second;
  }
}

void TokenTrie::add_fans() {
  std::vector<NodeId> children;
  for (NodeId node = 0; node < num_nodes(); ++node) {
    children.clear();
    for (NodeId child = node + 1; child < nodes_[node].skip; child = nodes_[child].skip) children.push_back(child);
    if (children.size() < kMinFan) continue;
    nodes_[node].fan = static_cast<std::uint32_t>(fans_.size());
    Fan fan = {.bytes = {}, .first = static_cast<std::uint32_t>(fan_children_.size())};
    for (const NodeId child : children) fan.bytes.set(nodes_[child].byte);
    fans_.push_back(fan);
    fan_children_.insert(fan_children_.end(), children.begin(), children.end());
  }
}

std::size_t TokenTrie::size_bytes() const {
  return sizeof(*this) + entries_.size() * sizeof(Entry) + nodes_.size() * sizeof(Node) +
         classes_.size() * sizeof(CharacterClasses) + fans_.size() * sizeof(Fan) +
         fan_children_.size() * sizeof(NodeId);
}

}  // namespace kvasir::grammar
