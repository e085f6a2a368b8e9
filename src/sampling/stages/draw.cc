#include "sampling/stages/draw.h"

#include <algorithm>
#include <cstddef>

#include "sampling/fast_exp.h"

namespace kvasir::sampling {

TokenId draw(std::span<const Candidate> candidates, double uniform) {
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  double left = uniform * total;
  TokenId token = kNoToken;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight == 0.0f) continue;
    token = candidate.token;  // rounding may leave a little over at the end: then the last one it is
    left -= candidate.weight;
    if (left < 0.0) break;
  }
  return token;
}

TokenId draw(const LogitRow& row, float inverse_temperature, double uniform, std::vector<double>& tile_sums) {
  double left = uniform * row.sum_exp(inverse_temperature, tile_sums);
  std::size_t tile = 0;
  for (std::size_t i = 0; i < tile_sums.size(); ++i) {
    if (tile_sums[i] == 0.0) continue;
    tile = i;
    if (left < tile_sums[i]) break;
    left -= tile_sums[i];
  }
  const std::span<const float> logits = row.logits();
  const std::size_t begin = tile * LogitRow::kTileSize;
  const std::size_t end = std::min(begin + LogitRow::kTileSize, logits.size());
  TokenId token = kNoToken;
  for (std::size_t i = begin; i < end; ++i) {
    const float weight = fast_exp((logits[i] - row.max()) * inverse_temperature);
    if (weight == 0.0f) continue;
    token = static_cast<TokenId>(i);
    left -= weight;
    if (left < 0.0) break;
  }
  return token;
}

}  // namespace kvasir::sampling
