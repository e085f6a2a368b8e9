#include "eval/hidden_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/printable.h"

namespace kvasir::eval {

Result<std::vector<HiddenTap>> parse_taps(const std::vector<std::string>& names, std::int32_t num_layers) {
  std::vector<HiddenTap> taps;
  for (const std::string& name : names) {
    HiddenTap tap{.is_final = name == "final"};
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tap.layer);
    const bool is_number = error == std::errc() && end == name.data() + name.size();
    if (!tap.is_final && (!is_number || tap.layer < 0 || tap.layer >= num_layers)) {
      return make_error(ErrorKind::kUsage, fmt::format("taps: final or a layer from 0 to {}, not '{}'", num_layers - 1, printable(name)), "taps");
    }
    taps.push_back(tap);
  }
  return taps;
}

void HiddenStates::add(std::size_t tap, std::span<const float> rows, std::int64_t width) {
  width_ = width;
  rows_[tap].insert(rows_[tap].end(), rows.begin(), rows.end());
}

// The head is the last matrix, whatever its name: a layer's begin with "blk.".
void HiddenStates::observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) {
  if (names.front() != "output.weight" && names.front() != "token_embd.weight") return;
  for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
    if (taps_[tap].is_final) add(tap, rows, width);
  }
}

// What layer l reads is what the one before it gave.
void HiddenStates::observe_stream(std::int32_t layer, std::span<const float> rows, std::int64_t width) {
  const std::int32_t given_by = layer == kHead ? num_layers_ - 1 : layer - 1;
  for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
    if (!taps_[tap].is_final && taps_[tap].layer == given_by) add(tap, rows, width);
  }
}

Result<std::vector<float>> HiddenStates::take(std::int64_t num_tokens) {
  std::vector<float> all;
  for (const std::vector<float>& rows : rows_) {
    if (std::ssize(rows) == num_tokens * width_) continue;
    return make_error(ErrorKind::kUnmet, fmt::format("taps: {} rows of {} tokens were seen: this architecture does not show what its layers give",
                                                     width_ > 0 ? std::ssize(rows) / width_ : 0, num_tokens), "taps");
  }
  all.reserve(static_cast<std::size_t>(num_tokens * width_) * rows_.size());
  for (std::int64_t token = 0; token < num_tokens; ++token) {
    for (const std::vector<float>& rows : rows_) all.insert(all.end(), rows.begin() + token * width_, rows.begin() + (token + 1) * width_);
  }
  forget();
  return all;
}

}  // namespace kvasir::eval
