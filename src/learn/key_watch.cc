#include "learn/key_watch.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/half.h"
#include "kv/cells/cell.h"
#include "learn/principal_components.h"

namespace kvasir::learn {
namespace {

// So many keys a channel are enough to tell components from chance.
constexpr std::int64_t kLeastKeysPerChannel = 8;

// Keys [16][head_dim] of a half cell of floats.
std::vector<double> keys_of(const std::byte* half, kv::KvFormat format, std::int32_t head_dim) {
  CHECK(format == kv::KvFormat::kF16 || format == kv::KvFormat::kF32);
  std::vector<double> keys(static_cast<std::size_t>(head_dim) * kv::kTokensPerBlock);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t channel = i / kv::kTokensPerBlock, token = i % kv::kTokensPerBlock;
    double& key = keys[token * static_cast<std::size_t>(head_dim) + channel];
    if (format == kv::KvFormat::kF32) {
      float number = 0.0f;
      std::memcpy(&number, half + i * sizeof(number), sizeof(number));
      key = number;
    } else {
      std::uint16_t number = 0;
      std::memcpy(&number, half + i * sizeof(number), sizeof(number));
      key = half_to_float(number);
    }
  }
  return keys;
}

void turn_back(const kv::KeyTurning& turning, std::int32_t position, double* key) {
  const std::size_t half = turning.inverse_frequencies.size();
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = position * turning.inverse_frequencies[i], c = std::cos(angle), s = std::sin(angle);
    double& a = key[turning.turns_halves ? i : 2 * i];
    double& b = key[turning.turns_halves ? i + half : 2 * i + 1];
    const double before = a;
    a = before * c + b * s;
    b = b * c - before * s;
  }
}

}  // namespace

KeyWatch::KeyWatch(ReadCell read_cell, std::vector<std::optional<kv::KeyTurning>> turnings)
    : read_cell_(std::move(read_cell)), turnings_(std::move(turnings)) {}

void KeyWatch::plan(const kv::PolicyView& view, std::vector<kv::CellAction>&) const {
  if (!turnings_[static_cast<std::size_t>(view.group)]) return;
  Group& group = groups_[view.group];
  group.head_dim = view.cells.head_dim(view.group);
  group.cells.resize(static_cast<std::size_t>(view.num_cells()));
  if (view.num_full_blocks < group.num_seen_blocks) group.num_seen_blocks = 0;  // another sequence
  for (std::int32_t b = std::max(kv::kNumSinkBlocks, group.num_seen_blocks); b < view.num_full_blocks; ++b) see(view, b, group);
  group.num_seen_blocks = view.num_full_blocks;
}

void KeyWatch::see(const kv::PolicyView& view, std::int32_t block, Group& group) const {
  const kv::KeyTurning& turning = *turnings_[static_cast<std::size_t>(view.group)];
  const auto width = static_cast<std::size_t>(group.head_dim);
  for (std::int32_t cell = 0; cell < view.num_cells(); ++cell) {
    const kv::KvCellRef ref = view.cells.at(view.group, view.blocks[static_cast<std::size_t>(block)], cell);
    std::vector<std::byte> half(static_cast<std::size_t>(kv::key_bytes(ref.format(), group.head_dim)));
    read_cell_(ref, half);
    std::vector<double> keys = keys_of(half.data(), ref.format(), group.head_dim);
    Sums& sums = group.cells[static_cast<std::size_t>(cell)];
    sums.keys.resize(width);
    sums.products.resize(width * width);
    for (int token = 0; token < kv::kTokensPerBlock; ++token) {
      double* const key = keys.data() + static_cast<std::size_t>(token) * width;
      turn_back(turning, block * kv::kTokensPerBlock, key);
      for (std::size_t i = 0; i < width; ++i) {
        sums.keys[i] += key[i];
        for (std::size_t j = i; j < width; ++j) sums.products[i * width + j] += key[i] * key[j];
      }
    }
    sums.num_keys += kv::kTokensPerBlock;
  }
}

kv::KeyStatistics KeyWatch::statistics_of(const Sums& sums, std::int32_t head_dim) {
  const auto width = static_cast<std::size_t>(head_dim);
  const auto count = static_cast<double>(sums.num_keys);
  std::vector<double> covariance(width * width);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = i; j < width; ++j) {
      const double of_pair = sums.products[i * width + j] / count - sums.keys[i] / count * (sums.keys[j] / count);
      covariance[i * width + j] = covariance[j * width + i] = of_pair;
    }
  }
  const PrincipalComponents components = principal_components(covariance, width);
  kv::KeyStatistics statistics;
  for (const double sum : sums.keys) statistics.mean.push_back(static_cast<float>(sum / count));
  // A channel that never changes has a deviation too: a step of 0 would divide by it.
  const double least = std::max(1e-6 * std::sqrt(components.variances.front()), 1e-20);
  for (const double variance : components.variances) {
    statistics.deviations.push_back(static_cast<float>(std::max(std::sqrt(variance), least)));
  }
  statistics.bits = kv::component_bits(statistics.deviations);
  statistics.deviations.resize(statistics.bits.size());
  statistics.directions.assign(components.directions.begin(),
                               components.directions.begin() + static_cast<std::ptrdiff_t>(statistics.bits.size() * width));
  return statistics;
}

std::vector<kv::KeyStatistics> KeyWatch::statistics_of(std::int32_t group) const {
  std::vector<kv::KeyStatistics> all;
  const auto found = groups_.find(group);
  if (found == groups_.end()) return all;
  for (const Sums& sums : found->second.cells) {
    if (sums.num_keys < kLeastKeysPerChannel * found->second.head_dim) return {};
    all.push_back(statistics_of(sums, found->second.head_dim));
  }
  return all;
}

}  // namespace kvasir::learn
