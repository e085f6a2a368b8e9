#include "sampling/stages/gumbel_max.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sampling/fast_exp.h"
#include "sampling/float4.h"

namespace kvasir::sampling {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Who leads, and when it came.
class Race {
 public:
  explicit Race(const GumbelNoise& noise) : noise_(noise) {}

  // A token of this weight or less comes later than the leader where its coarse number is greater: E >= v, and v is above
  // the coarse number. The margin is for fast_exp, which may give a tile's maximum less than another of its tokens.
  double last_coarse(float weight) const {
    constexpr double kMargin = 1.0 + 0x1p-20;
    return time_ * weight * (kMargin * 0x1p32);
  }

  void run(TokenId token, float weight) {
    if (weight == 0.0f || noise_.coarse(token) > last_coarse(weight)) return;
    const double time = noise_.exponential(token) / weight;
    if (time > time_ || (time == time_ && token > leader_)) return;
    time_ = time;
    leader_ = token;
  }

  TokenId leader() const { return leader_; }

 private:
  const GumbelNoise& noise_;
  TokenId leader_ = kNoToken;
  double time_ = std::numeric_limits<double>::infinity();
};

// Whether one of a tile's coarse numbers is at most this. Tokens that a last tile lacks may be it.
bool has_coarse(const GumbelNoise& noise, TokenId first, double most) {
  const Int4 signed_most = GumbelNoise::as_signed(Uint4{} + static_cast<std::uint32_t>(std::min(most, 0x1p32 - 1.0)));
  Uint4 places = Uint4{0, 1, 2, 3} * GumbelNoise::kStride + noise.place_of(first);
  Int4 found = {};
  for (std::size_t i = 0; i < LogitRow::kTileSize; i += kLanes) {
    found |= GumbelNoise::as_signed(noise.coarse(places)) <= signed_most;
    places += static_cast<std::uint32_t>(kLanes) * GumbelNoise::kStride;
  }
  return (found[0] | found[1] | found[2] | found[3]) != 0;
}

// The weights of the tiles' maxima, four tiles at a time; 0 beyond the last.
Float4 weights_of(std::span<const float> maxima, float max, float inverse_temperature) {
  Float4 logits = broadcast(kMinusInfinity);
  if (maxima.size() >= kLanes) {
    logits = load4(maxima.data());
  } else {
    for (std::size_t i = 0; i < maxima.size(); ++i) logits[i] = maxima[i];
  }
  return fast_exp((logits - max) * inverse_temperature);
}

}  // namespace

TokenId gumbel_max(std::span<const Candidate> candidates, const GumbelNoise& noise) {
  Race race(noise);
  for (const Candidate& candidate : candidates) race.run(candidate.token, candidate.weight);
  return race.leader();
}

// The likeliest token runs first, so that few others are early enough for the greatest weight of their tile.
TokenId gumbel_max(const LogitRow& row, float inverse_temperature, const GumbelNoise& noise) {
  Race race(noise);
  race.run(row.argmax(), fast_exp(0.0f));
  const std::span<const float> maxima = row.tile_maxima();
  for (std::size_t begin = 0; begin < maxima.size(); begin += kLanes) {
    const Float4 greatest = weights_of(maxima.subspan(begin), row.max(), inverse_temperature);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (greatest[lane] == 0.0f) continue;
      const auto first = static_cast<TokenId>((begin + lane) * LogitRow::kTileSize);
      const double most = race.last_coarse(greatest[lane]);
      if (!has_coarse(noise, first, most)) continue;
      TokenId token = first;
      for (const float logit : row.tile(begin + lane)) {
        if (noise.coarse(token) <= most) race.run(token, fast_exp((logit - row.max()) * inverse_temperature));
        ++token;
      }
    }
  }
  return race.leader();
}

}  // namespace kvasir::sampling
