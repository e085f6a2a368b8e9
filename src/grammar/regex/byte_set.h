// A set of bytes.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "grammar/bit_count.h"

namespace kvasir::grammar {

// A value of 32 bytes.
class ByteSet {
 public:
  void set(unsigned char byte) { words_[byte / 64] |= std::uint64_t{1} << (byte % 64); }
  bool test(unsigned char byte) const { return (words_[byte / 64] >> (byte % 64) & 1) != 0; }
  bool empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }
  std::size_t count() const {
    std::size_t count = 0;
    for (const std::uint64_t word : words_) count += bit_count(word);
    return count;
  }
  // How many of the set are less than the byte.
  std::size_t count_below(unsigned char byte) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < byte / 64u; ++i) count += bit_count(words_[i]);
    const std::uint64_t below = (std::uint64_t{1} << (byte % 64)) - 1;
    return count + bit_count(words_[byte / 64] & below);
  }
  // Removes the least byte and returns it. Requires: not empty.
  unsigned char take_first() {
    std::size_t i = 0;
    while (words_[i] == 0) ++i;
    const int bit = std::countr_zero(words_[i]);
    words_[i] &= words_[i] - 1;
    return static_cast<unsigned char>(i * 64 + static_cast<std::size_t>(bit));
  }

  ByteSet& operator|=(const ByteSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  friend ByteSet operator-(ByteSet a, const ByteSet& b) {
    for (std::size_t i = 0; i < a.words_.size(); ++i) a.words_[i] &= ~b.words_[i];
    return a;
  }
  friend ByteSet operator&(ByteSet a, const ByteSet& b) {
    for (std::size_t i = 0; i < a.words_.size(); ++i) a.words_[i] &= b.words_[i];
    return a;
  }
  friend bool operator==(const ByteSet&, const ByteSet&) = default;

 private:
  std::array<std::uint64_t, 4> words_ = {};
};

}  // namespace kvasir::grammar
