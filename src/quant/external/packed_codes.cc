#include "quant/external/packed_codes.h"

#include <cstring>

namespace kvasir::quant {
namespace {

constexpr int kWordBits = 32;
constexpr int kAwqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};  // of each of eight outputs in their word

std::uint32_t word_at(const void* words, std::int64_t index) {
  std::uint32_t word;
  std::memcpy(&word, static_cast<const char*>(words) + index * 4, sizeof word);
  return word;
}

std::uint8_t code_in(std::uint32_t word, int bits, std::int64_t place) {
  return static_cast<std::uint8_t>(word >> (bits * place) & ((1u << bits) - 1u));
}

}  // namespace

void compressed_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes) {
  const int per_word = kWordBits / packed.bits;
  const std::int64_t words_per_row = (packed.num_inputs + per_word - 1) / per_word;
  for (std::int64_t i = 0; i < packed.num_inputs; ++i) {
    codes[i] = code_in(word_at(packed.words, output * words_per_row + i / per_word), packed.bits, i % per_word);
  }
}

std::uint8_t compressed_zero(const void* words, int bits, std::int64_t output, std::int64_t group,
                             std::int64_t num_groups) {
  const int per_word = kWordBits / bits;
  return code_in(word_at(words, output / per_word * num_groups + group), bits, output % per_word);
}

void gptq_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes) {
  const int per_word = kWordBits / packed.bits;
  for (std::int64_t i = 0; i < packed.num_inputs; ++i) {
    codes[i] = code_in(word_at(packed.words, i / per_word * packed.num_outputs + output), packed.bits, i % per_word);
  }
}

std::uint8_t gptq_zero(const void* words, int bits, std::int64_t output, std::int64_t group,
                       std::int64_t num_outputs) {
  const int per_word = kWordBits / bits;
  return code_in(word_at(words, group * (num_outputs / per_word) + output / per_word), bits, output % per_word);
}

void awq_row(const PackedCodes& packed, std::int64_t output, std::uint8_t* codes) {
  const std::int64_t words_per_input = packed.num_outputs / 8;
  for (std::int64_t i = 0; i < packed.num_inputs; ++i) {
    codes[i] = code_in(word_at(packed.words, i * words_per_input + output / 8), 4, kAwqPlaces[output % 8]);
  }
}

std::uint8_t awq_zero(const void* words, std::int64_t output, std::int64_t group, std::int64_t num_outputs) {
  return code_in(word_at(words, group * (num_outputs / 8) + output / 8), 4, kAwqPlaces[output % 8]);
}

}  // namespace kvasir::quant
