#include "kernels/ref/key_components.h"

#include <cmath>
#include <cstring>

#include "kernels/ref/kernels.h"

namespace kvasir::kernels::ref {
namespace {

// By the position of the block's first token, back or forward.
void turn(const kv::KeyBasis& basis, std::int32_t block, bool is_back, float* row) {
  const std::int32_t half = basis.rotary_dim / 2;
  const float* const angles = basis.angles_of(block);
  std::vector<float> sines(angles + half, angles + basis.rotary_dim);
  if (!is_back) {
    for (float& sine : sines) sine = -sine;
  }
  rope(row, angles, sines.data(), basis.rotary_dim, basis.turns_halves ? RopeStyle::kHalves : RopeStyle::kInterleaved);
}

// The plane that has bit `bit` of a component.
std::int64_t plane_of(const kv::KeyBasis& basis, std::int32_t component, int bit) {
  std::int64_t plane = component;
  for (int higher = kv::kMaxComponentBits - 1; higher > bit; --higher) plane += basis.num_with_bit[higher];
  return plane;
}

}  // namespace

std::vector<float> component_key(const kv::KeyBasis& basis, const std::byte* half, std::int32_t head_dim, std::int32_t block,
                                 std::int32_t token) {
  std::vector<float> numbers(static_cast<std::size_t>(basis.num_components));
  for (std::int32_t c = 0; c < basis.num_components; ++c) {
    int number = 0;
    for (int bit = 0; bit < kv::kMaxComponentBits && c < basis.num_with_bit[bit]; ++bit) {
      std::uint16_t plane = 0;
      std::memcpy(&plane, half + plane_of(basis, c, bit) * 2, sizeof(plane));
      number |= (plane >> token & 1) << bit;
    }
    numbers[static_cast<std::size_t>(c)] = static_cast<float>(number);
  }
  std::vector<float> key(static_cast<std::size_t>(head_dim));
  for (std::int32_t d = 0; d < head_dim; ++d) {
    const float* const columns = basis.of_queries + std::int64_t{d} * basis.stride;
    float& sum = key[static_cast<std::size_t>(d)];
    sum = basis.constants[d];
    for (std::int32_t c = 0; c < basis.num_components; ++c) sum = std::fma(columns[c], numbers[static_cast<std::size_t>(c)], sum);
  }
  turn(basis, block, false, key.data());
  return key;
}

void write_components(const kv::KeyBasis& basis, const std::vector<std::vector<float>>& keys, std::int32_t block, std::byte* half) {
  const auto head_dim = static_cast<std::int32_t>(keys.front().size());
  std::memset(half, 0, static_cast<std::size_t>(head_dim) * kv::kKeyPlanesPerChannel * sizeof(std::uint16_t));
  for (std::size_t token = 0; token < keys.size(); ++token) {
    std::vector<float> key = keys[token];
    turn(basis, block, true, key.data());
    for (std::int32_t c = 0; c < basis.num_components; ++c) {
      float sum = basis.key_offsets[c];
      for (std::int32_t d = 0; d < head_dim; ++d) {
        sum = std::fma(key[static_cast<std::size_t>(d)], basis.of_keys[std::int64_t{d} * basis.stride + c], sum);
      }
      const auto number = static_cast<unsigned>(std::nearbyint(std::fmin(std::fmax(sum, 0.0f), basis.greatest_numbers[c])));
      for (int bit = 0; bit < kv::kMaxComponentBits && c < basis.num_with_bit[bit]; ++bit) {
        std::byte* const at = half + plane_of(basis, c, bit) * 2;
        std::uint16_t plane = 0;
        std::memcpy(&plane, at, sizeof(plane));
        plane = static_cast<std::uint16_t>(plane | (number >> bit & 1u) << token);
        std::memcpy(at, &plane, sizeof(plane));
      }
    }
  }
}

}  // namespace kvasir::kernels::ref
