// What layers of a model give for each token, for those who train something on it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "kvasir/result.h"

namespace kvasir::eval {

// "final" is the head's input; a number is the output of that layer, from 0 on.
struct HiddenTap {
  bool is_final = false;
  std::int32_t layer = 0;
};

// Error (kUsage): a name that is none, or a layer that the model lacks.
Result<std::vector<HiddenTap>> parse_taps(const std::vector<std::string>& names, std::int32_t num_layers);

// Collects the rows of one prompt at a time. Thread safety: none; the engine's thread observes.
class HiddenStates final : public backend::InputObserver {
 public:
  void choose(std::vector<HiddenTap> taps, std::int32_t num_layers) {
    taps_ = std::move(taps);
    num_layers_ = num_layers;
    forget();
  }

  void observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) override;
  void observe_stream(std::int32_t layer, std::span<const float> rows, std::int64_t width) override;

  // [tokens, taps, width] of the prompt that was just run. Error (kUnmet): an architecture whose layers' outputs are not
  // seen.
  Result<std::vector<float>> take(std::int64_t num_tokens);
  std::int64_t width() const { return width_; }

 private:
  void forget() { rows_.assign(taps_.size(), {}); }
  void add(std::size_t tap, std::span<const float> rows, std::int64_t width);

  std::vector<HiddenTap> taps_;
  std::int32_t num_layers_ = 0;
  std::int64_t width_ = 0;
  std::vector<std::vector<float>> rows_;  // by tap
};

}  // namespace kvasir::eval
