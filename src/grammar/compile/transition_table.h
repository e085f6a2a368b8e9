// Where tokens lead, remembered for readers that take no lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kvasir::grammar {

// Open addressing; a full table is replaced by one of twice its size, and kept for those who still read it.
//
// Thread safety: find() from any thread; insert() by one thread at a time.
class TransitionTable {
 public:
  std::optional<std::uint32_t> find(std::uint64_t key) const {
    const Table* table = current_.load(std::memory_order_acquire);
    if (table == nullptr) return std::nullopt;
    for (std::size_t at = hash(key) & table->mask;; at = (at + 1) & table->mask) {
      const std::uint64_t found = table->slots[at].key.load(std::memory_order_acquire);
      if (found == key) return table->slots[at].value.load(std::memory_order_relaxed);
      if (found == kEmpty) return std::nullopt;
    }
  }
  // Requires: the key is new and not ~0.
  void insert(std::uint64_t key, std::uint32_t value) {
    if (tables_.empty() || (size_ + 1) * 4 > (tables_.back()->mask + 1) * 3) grow();
    place(*tables_.back(), key, value);
    ++size_;
  }
  std::size_t size_bytes() const { return size_bytes_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};
  struct Slot {
    std::atomic<std::uint64_t> key = kEmpty;
    std::atomic<std::uint32_t> value = 0;
  };
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), slots(new Slot[size]) {}
    std::size_t mask;
    std::unique_ptr<Slot[]> slots;
  };

  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15;
    return static_cast<std::size_t>(key ^ key >> 32);
  }
  static void place(Table& table, std::uint64_t key, std::uint32_t value) {
    std::size_t at = hash(key) & table.mask;
    while (table.slots[at].key.load(std::memory_order_relaxed) != kEmpty) at = (at + 1) & table.mask;
    table.slots[at].value.store(value, std::memory_order_relaxed);
    table.slots[at].key.store(key, std::memory_order_release);
  }
  void grow() {
    auto larger = std::make_unique<Table>(tables_.empty() ? 64 : (tables_.back()->mask + 1) * 2);
    if (!tables_.empty()) {
      for (std::size_t i = 0; i <= tables_.back()->mask; ++i) {
        const Slot& slot = tables_.back()->slots[i];
        const std::uint64_t key = slot.key.load(std::memory_order_relaxed);
        if (key != kEmpty) place(*larger, key, slot.value.load(std::memory_order_relaxed));
      }
    }
    size_bytes_ += (larger->mask + 1) * sizeof(Slot);
    current_.store(larger.get(), std::memory_order_release);
    tables_.push_back(std::move(larger));
  }

  std::atomic<const Table*> current_ = nullptr;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
  std::size_t size_ = 0;
  std::size_t size_bytes_ = 0;
};

}  // namespace kvasir::grammar
