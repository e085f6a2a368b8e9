// Figures held against their limits, and what they say together about a change.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/wilson.h"

namespace kvasir::eval {

// One figure. The same rule never serves both directions: each figure carries its own.
struct GateCheck {
  std::string name;
  double value = std::numeric_limits<double>::quiet_NaN();  // no number never holds
  double limit = 0.0;
  double best = 0.0;  // the value of a change that loses nothing
  bool less_is_better = true;
  std::int32_t num_items = 0;  // that counted
  std::int32_t num_asked = 0;  // .. of so many
  std::optional<WilsonInterval> interval = {};  // of a share
  std::int32_t least = 0;  // of fewer items it is no figure: the reference itself fails the others

  bool counts() const { return num_items > 0 && num_items >= least; }
  bool holds() const { return counts() && (less_is_better ? value <= limit : value >= limit); }
  // 1 for the best value, 1/2 at the limit, 0 as far behind it again. Where the limit is the best value: 1 or 0.
  double score() const;
};

// The share of `num_counted` items that hold, of `num_asked` that were tried. It counts when at least `least` did.
GateCheck share_check(std::string_view name, std::int32_t num_kept, std::int32_t num_counted, std::int32_t num_asked,
                      double limit, std::int32_t least);

enum class GateVerdict : std::uint8_t {
  kPassed,
  kFailed,   // a figure is behind its limit
  kUnknown,  // too few items counted, or the layer did not run; it is not passed
};
std::string_view name_of(GateVerdict verdict);

// Figures of one kind.
struct GateLayer {
  std::string name;
  double weight = 1.0;      // in the score of the gate
  std::int32_t num_items = 0;  // that counted, in all kinds
  std::int32_t least = 0;      // fewer make it unknown
  std::vector<GateCheck> checks;
  std::string reason = {};  // why it is unknown whatever its figures say; empty: nothing is in the way

  // A figure behind its limit fails the layer even where little else counts.
  GateVerdict verdict() const;
  // The mean over the checks that count; 0 for a layer that is unknown.
  double score() const;
};

// Layers in the order of the work.
struct GateReport {
  std::vector<GateLayer> layers;

  // Each layer has passed, and there is one.
  bool passed() const;
  // The mean of the layers by weight, 0 to 1.
  double score() const;
};

}  // namespace kvasir::eval
