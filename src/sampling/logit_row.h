// Reductions and searches over one row of logits, in fixed tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kvasir/ids.h"
#include "sampling/candidate.h"

namespace kvasir::sampling {

// One row's logits with the maximum of each tile of 64. The maxima let every later search skip almost all of
// the vocabulary, so that nothing here sorts it. Sums add tiles in order: the same row gives the same bits.
//
// Borrows the logits, which must not change while it is used; reusing one LogitRow for row after row
// allocates only until the largest has been seen. Thread safety: none.
class LogitRow {
 public:
  static constexpr std::size_t kTileSize = 64;

  // Reads the whole row once, or only what lies beyond the whole tiles whose maxima (NaN where a logit is)
  // the caller knows.
  void assign(std::span<const float> logits, std::span<const float> known_maxima = {});

  // The same for a row of which tokens count alone that have a bit in `words`, as AllowedTokens has them. Logits of
  // others become -inf, or are not read where their whole tile is out: they need not be known. So need none of a tile
  // whose known maximum is -inf.
  void assign_allowed(std::span<float> logits, std::span<const std::uint64_t> words,
                      std::span<const float> known_maxima = {});

  std::span<const float> logits() const { return logits_; }
  std::span<const float> tile_maxima() const { return tile_max_; }
  std::span<const float> tile(std::size_t index) const;  // its logits; the last may have fewer
  float max() const { return max_; }  // ignores NaN; -inf for an empty row
  bool has_nan() const { return has_nan_; }

  // The most likely token, the lowest id among equals. Requires: max() > -inf.
  TokenId argmax() const;

  // The sum of e^((logit - max) * inverse_temperature), and that of each tile in `tile_sums`.
  double sum_exp(float inverse_temperature, std::vector<double>& tile_sums) const;

  // A logit that at least min(count, size) tokens reach and, on usual rows, few more. Requires: count >= 1.
  float threshold_for(std::size_t count, std::vector<float>& scratch) const;

  // The tokens with logit >= threshold, by ascending id; weights are not set.
  void gather(float threshold, std::vector<Candidate>& candidates) const;

  // Whether the token's logit is known and above -inf.
  bool is_possible(TokenId token) const;

  // How many tokens are more likely than this one.
  std::size_t num_more_likely(TokenId token) const;

 private:
  void note(std::size_t tile, float max, bool has_nan);

  std::span<const float> logits_;
  std::vector<float> tile_max_;
  float max_ = 0.0f;
  bool has_nan_ = false;
};

}  // namespace kvasir::sampling
