// A sample of a stream in which each of its items is as likely to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace kvasir::learn {

// Vitter 1985, algorithm R. Thread safety: none.
template <class T>
class Reservoir {
 public:
  Reservoir(std::size_t capacity, std::uint64_t seed) : capacity_(capacity), random_(seed) {}

  void add(const T& item) {
    ++num_seen_;
    if (items_.size() < capacity_) return items_.push_back(item);
    const std::uint64_t place = random_() % num_seen_;  // the bias of a remainder is below 2^-30
    if (place < capacity_) items_[place] = item;
  }
  const std::vector<T>& items() const { return items_; }
  std::uint64_t num_seen() const { return num_seen_; }

 private:
  std::size_t capacity_;
  std::mt19937_64 random_;
  std::uint64_t num_seen_ = 0;
  std::vector<T> items_;
};

}  // namespace kvasir::learn
