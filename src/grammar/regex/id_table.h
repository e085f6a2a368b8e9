// Numbers found by the hash of what they stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kvasir::grammar {

// Open addressing with linear probing; what a number stands for lies elsewhere.
//
// Thread safety: none.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The number of this hash for which is_same(number); kNone when there is none.
  template <typename IsSame>
  std::uint32_t find(std::uint64_t hash, IsSame&& is_same) const {
    if (slots_.empty()) return kNone;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.id == kNone) return kNone;
      if (slot.tag == tag && is_same(slot.id)) return slot.id;
    }
  }
  // Requires: find() gave kNone.
  void insert(std::uint64_t hash, std::uint32_t id) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    hashes_.push_back(hash);
    place(hash, id);
    ++size_;
    ids_.push_back(id);
  }
  std::size_t size_bytes() const { return slots_.size() * sizeof(Slot) + size_ * 12; }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id = kNone;
  };

  void place(std::uint64_t hash, std::uint32_t id) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at].id != kNone) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {static_cast<std::uint32_t>(hash >> 32), id};
  }
  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, {});
    for (std::size_t i = 0; i < size_; ++i) place(hashes_[i], ids_[i]);
  }

  std::vector<Slot> slots_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> ids_;
  std::size_t size_ = 0;
};

}  // namespace kvasir::grammar
