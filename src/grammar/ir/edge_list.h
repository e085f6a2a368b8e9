// Edges of one node.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvasir::grammar {

using NodeId = std::uint32_t;      // of an automaton
using RuleId = std::uint32_t;
using TerminalId = std::uint32_t;  // place in Grammar::terminals

// One step of an automaton.
struct Edge {
  enum class Kind : std::uint8_t {
    kTerminal,  // a text of terminals[value]
    kRule,      // a text of rules[value]
    kToken,     // the token of the id `value`, whatever its text
    kSkip,      // nothing
  };
  Kind kind = Kind::kSkip;
  bool is_tail = false;  // of kRule: the called rule ends and completes this one (mark_tail_calls)
  std::uint32_t value = 0;
  NodeId target = 0;
};

// A list that needs no memory of its own for two edges; nearly all nodes have no more.
//
// Thread safety: as of a value.
class EdgeList {
 public:
  void push_back(const Edge& edge) {
    if (more_.empty() && size_ < few_.size()) {
      few_[size_++] = edge;
      return;
    }
    if (more_.empty()) more_.assign(few_.begin(), few_.end());
    more_.push_back(edge);
    size_ = static_cast<std::uint32_t>(more_.size());
  }
  void clear() {
    more_.clear();
    size_ = 0;
  }
  template <typename IsUnwanted>
  void erase_if(IsUnwanted&& is_unwanted) {
    Edge* const begin = more_.empty() ? few_.data() : more_.data();
    size_ = static_cast<std::uint32_t>(std::remove_if(begin, begin + size_, is_unwanted) - begin);
    if (more_.empty()) return;
    more_.resize(size_);
    if (size_ > few_.size()) return;
    std::ranges::copy(more_, few_.begin());
    more_.clear();
  }

  std::span<Edge> edges() { return {more_.empty() ? few_.data() : more_.data(), size_}; }
  std::span<const Edge> edges() const { return {more_.empty() ? few_.data() : more_.data(), size_}; }
  auto begin() const { return edges().begin(); }
  auto end() const { return edges().end(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  std::uint32_t size_ = 0;
  std::array<Edge, 2> few_ = {};
  std::vector<Edge> more_;  // all, when they are more
};

}  // namespace kvasir::grammar
