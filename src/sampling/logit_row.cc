#include "sampling/logit_row.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "base/checked_math.h"
#include "sampling/fast_exp.h"
#include "sampling/float4.h"

namespace kvasir::sampling {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct TileScan {
  float max;
  bool has_nan;
};

TileScan scan_whole_tile(const float* x) {
  Float4 max[2] = {broadcast(kMinusInfinity), broadcast(kMinusInfinity)};  // two, to hide the latency
  Int4 unordered = {};
  for (std::size_t i = 0; i < LogitRow::kTileSize; i += 2 * kLanes) {
    for (std::size_t j = 0; j < 2; ++j) {
      const Float4 values = load4(x + i + j * kLanes);
      max[j] = values > max[j] ? values : max[j];
      unordered |= values != values;
    }
  }
  max[0] = max[1] > max[0] ? max[1] : max[0];
  TileScan scan{kMinusInfinity, false};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    scan.max = std::max(scan.max, max[0][lane]);
    scan.has_nan |= unordered[lane] != 0;
  }
  return scan;
}

TileScan scan_tile(std::span<const float> tile) {
  if (tile.size() == LogitRow::kTileSize) return scan_whole_tile(tile.data());
  TileScan scan{kMinusInfinity, false};
  for (const float value : tile) {
    scan.max = value > scan.max ? value : scan.max;
    scan.has_nan |= std::isnan(value);
  }
  return scan;
}

// The scan of a tile whose maximum is known: NaN where a logit is.
TileScan known_scan(float max) {
  return std::isnan(max) ? TileScan{kMinusInfinity, true} : TileScan{max, false};
}

double sum_exp_whole_tile(const float* x, float max, float inverse_temperature) {
  Float4 sums = {};  // 16 terms a lane in single precision; the tiles are added in double
  for (std::size_t i = 0; i < LogitRow::kTileSize; i += kLanes) {
    sums += fast_exp((load4(x + i) - max) * inverse_temperature);
  }
  return (static_cast<double>(sums[0]) + sums[1]) + (static_cast<double>(sums[2]) + sums[3]);
}

double sum_exp_tile(std::span<const float> tile, float max, float inverse_temperature) {
  if (tile.size() == LogitRow::kTileSize) return sum_exp_whole_tile(tile.data(), max, inverse_temperature);
  float padded[LogitRow::kTileSize];
  std::ranges::copy(tile, padded);
  std::fill(padded + tile.size(), padded + LogitRow::kTileSize, kMinusInfinity);  // e^-inf adds nothing
  return sum_exp_whole_tile(padded, max, inverse_temperature);
}

}  // namespace

std::span<const float> LogitRow::tile(std::size_t index) const {
  const std::size_t begin = index * kTileSize;
  return logits_.subspan(begin, std::min(kTileSize, logits_.size() - begin));
}

void LogitRow::assign(std::span<const float> logits, std::span<const float> known_maxima) {
  logits_ = logits;
  max_ = kMinusInfinity;
  has_nan_ = false;
  tile_max_.resize(ceil_div(logits.size(), kTileSize));
  const std::size_t num_known = std::min(known_maxima.size(), logits.size() / kTileSize);
  for (std::size_t i = 0; i < tile_max_.size(); ++i) {
    const TileScan scan = i < num_known ? known_scan(known_maxima[i]) : scan_tile(tile(i));
    note(i, scan.max, scan.has_nan);
  }
}

void LogitRow::note(std::size_t tile, float max, bool has_nan) {
  tile_max_[tile] = max;
  max_ = std::max(max_, max);
  has_nan_ |= has_nan;
}

void LogitRow::assign_allowed(std::span<float> logits, std::span<const std::uint64_t> words,
                              std::span<const float> known_maxima) {
  logits_ = logits;
  max_ = kMinusInfinity;
  has_nan_ = false;
  tile_max_.resize(ceil_div(logits.size(), kTileSize));
  const std::size_t num_known = std::min(known_maxima.size(), logits.size() / kTileSize);
  for (std::size_t i = 0; i < tile_max_.size(); ++i) {
    const std::uint64_t word = i < words.size() ? words[i] : 0;
    if (word == 0 || (i < num_known && known_maxima[i] == kMinusInfinity)) {
      note(i, kMinusInfinity, false);
      continue;
    }
    TileScan scan{};
    if (word == ~std::uint64_t{0} && i < num_known) {
      scan = known_scan(known_maxima[i]);
    } else {
      const std::size_t begin = i * kTileSize, end = std::min(begin + kTileSize, logits.size());
      for (std::size_t at = begin; at < end; ++at) {
        if ((word >> (at - begin) & 1) == 0) logits[at] = kMinusInfinity;
      }
      scan = scan_tile(tile(i));
    }
    note(i, scan.max, scan.has_nan);
  }
}

TokenId LogitRow::argmax() const {
  const auto best_tile = std::ranges::find(tile_max_, max_) - tile_max_.begin();
  const std::span<const float> best = tile(static_cast<std::size_t>(best_tile));
  const auto offset = std::ranges::find(best, max_) - best.begin();
  return static_cast<TokenId>(best_tile * static_cast<std::ptrdiff_t>(kTileSize) + offset);
}

double LogitRow::sum_exp(float inverse_temperature, std::vector<double>& tile_sums) const {
  tile_sums.resize(tile_max_.size());
  double total = 0.0;
  for (std::size_t i = 0; i < tile_sums.size(); ++i) {
    tile_sums[i] = tile_max_[i] == kMinusInfinity ? 0.0 : sum_exp_tile(tile(i), max_, inverse_temperature);
    total += tile_sums[i];
  }
  return total;
}

// Each of the `count` greatest tile maxima is a token that reaches the least of them.
float LogitRow::threshold_for(std::size_t count, std::vector<float>& scratch) const {
  if (count > tile_max_.size()) return kMinusInfinity;
  scratch.assign(tile_max_.begin(), tile_max_.end());
  const auto nth = scratch.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(scratch.begin(), nth, scratch.end(), std::greater<>());
  return *nth;
}

void LogitRow::gather(float threshold, std::vector<Candidate>& candidates) const {
  candidates.clear();
  for (std::size_t i = 0; i < tile_max_.size(); ++i) {
    if (tile_max_[i] < threshold) continue;
    const std::span<const float> values = tile(i);
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (values[j] < threshold) continue;
      candidates.push_back({.logit = values[j], .token = static_cast<TokenId>(i * kTileSize + j)});
    }
  }
}

bool LogitRow::is_possible(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);
  return index < logits_.size() && tile_max_[index / kTileSize] > kMinusInfinity && logits_[index] > kMinusInfinity;
}

std::size_t LogitRow::num_more_likely(TokenId token) const {
  const auto index = static_cast<std::size_t>(token);
  const float logit = logits_[index];
  std::size_t count = 0;
  for (std::size_t i = 0; i < tile_max_.size(); ++i) {
    if (tile_max_[i] < logit) continue;
    const std::span<const float> values = tile(i);
    const std::size_t begin = i * kTileSize;
    for (std::size_t j = 0; j < values.size(); ++j) {
      count += values[j] > logit || (values[j] == logit && begin + j < index);
    }
  }
  return count;
}

}  // namespace kvasir::sampling
