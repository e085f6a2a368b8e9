// The loop that both tokenizers share: merge the best pair of neighbours until none can be merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace kvasir::text {

inline constexpr std::int32_t kNoPiece = -1;
inline constexpr std::uint32_t kNoPriority = std::numeric_limits<std::uint32_t>::max();

// The piece that two neighbours become. Lower priorities merge first. Requires: priority < kNoPriority.
struct Merge {
  std::uint32_t priority = kNoPriority;
  std::int32_t piece = kNoPiece;
};

// A stretch of the text that is one piece so far, linked to its neighbours.
struct Symbol {
  std::uint32_t begin = 0;  // in bytes
  std::uint32_t size_bytes = 0;
  std::int32_t piece = kNoPiece;
  std::int32_t previous = -1;
  std::int32_t next = -1;
  Merge with_next = {};  // its merge with the next symbol; kNoPriority: none
};

// Merges the pair of lowest priority first, and of equal ones the leftmost, as SentencePiece and GPT-2
// define it. Takes O(n log n) for n symbols on any input. Reusable: it keeps its memory from call to call.
//
// Thread safety: none; one per encode call.
class PairMerger {
 public:
  void clear() { symbols_.clear(); }
  void add_symbol(std::uint32_t begin, std::uint32_t size_bytes, std::int32_t piece) {
    symbols_.push_back({.begin = begin, .size_bytes = size_bytes, .piece = piece});
  }

  // find_merge(const Symbol& left, const Symbol& right) -> std::optional<Merge>
  template <class FindMerge>
  void merge(FindMerge find_merge) {
    link();
    queue_.clear();
    const auto update = [&](std::int32_t index) {
      Symbol& left = at(index);
      left.with_next = {};
      if (left.next < 0) return false;
      if (const std::optional<Merge> found = find_merge(left, at(left.next))) left.with_next = *found;
      return left.with_next.priority != kNoPriority;
    };
    for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols_.size()); ++i) {
      if (update(i)) queue_.push_back(queue_entry(i));
    }
    std::ranges::make_heap(queue_, std::greater<>{});
    const auto update_and_push = [&](std::int32_t index) {
      if (index < 0 || !update(index)) return;
      queue_.push_back(queue_entry(index));
      std::ranges::push_heap(queue_, std::greater<>{});
    };
    while (!queue_.empty()) {
      const std::uint64_t entry = queue_.front();
      std::ranges::pop_heap(queue_, std::greater<>{});
      queue_.pop_back();
      const auto left = static_cast<std::int32_t>(entry & 0xFFFFFFFF);
      // An entry is out of date when its pair has changed; then it no longer has this priority.
      if (at(left).with_next.priority != entry >> 32) continue;
      absorb_next(left);
      update_and_push(left);
      update_and_push(at(left).previous);
    }
  }

  // The symbols that are left, in order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
      visit(symbols_[static_cast<std::size_t>(i)]);
    }
  }

 private:
  Symbol& at(std::int32_t index) { return symbols_[static_cast<std::size_t>(index)]; }

  // Orders by priority, then from left to right.
  std::uint64_t queue_entry(std::int32_t left) {
    return std::uint64_t{at(left).with_next.priority} << 32 | static_cast<std::uint32_t>(left);
  }

  void link() {
    const auto count = static_cast<std::int32_t>(symbols_.size());
    for (std::int32_t i = 0; i < count; ++i) {
      at(i).previous = i - 1;
      at(i).next = i + 1 < count ? i + 1 : -1;
    }
  }

  void absorb_next(std::int32_t index) {
    Symbol& left = at(index);
    Symbol& right = at(left.next);
    left.size_bytes += right.size_bytes;
    left.piece = left.with_next.piece;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = index;
    right.with_next = {};
  }

  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> queue_;  // a min-heap of priority << 32 | index of the left symbol
};

}  // namespace kvasir::text
