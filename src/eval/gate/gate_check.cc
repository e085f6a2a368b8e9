#include "eval/gate/gate_check.h"

#include <algorithm>
#include <cmath>

namespace kvasir::eval {

double GateCheck::score() const {
  if (limit == best) return holds() ? 1.0 : 0.0;
  const double lost = (value - best) / (limit - best);  // 1 at the limit, in either direction
  return std::isnan(lost) ? 0.0 : std::clamp(1.0 - 0.5 * lost, 0.0, 1.0);
}

GateCheck share_check(std::string_view name, std::int32_t num_kept, std::int32_t num_counted, std::int32_t num_asked,
                      double limit, std::int32_t least) {
  GateCheck check{.name = std::string(name), .limit = limit, .best = 1.0, .less_is_better = false,
                  .num_items = num_counted, .num_asked = num_asked, .least = least};
  if (num_counted == 0) return check;
  check.value = static_cast<double>(num_kept) / num_counted;
  check.interval = wilson_interval(num_kept, num_counted);
  return check;
}

std::string_view name_of(GateVerdict verdict) {
  constexpr std::string_view kNames[] = {"passed", "failed", "unknown"};
  return kNames[static_cast<std::size_t>(verdict)];
}

GateVerdict GateLayer::verdict() const {
  const bool fails = std::ranges::any_of(checks, [](const GateCheck& check) { return check.counts() && !check.holds(); });
  if (fails) return GateVerdict::kFailed;
  const bool has_any = std::ranges::any_of(checks, &GateCheck::counts);
  return reason.empty() && has_any && num_items >= least ? GateVerdict::kPassed : GateVerdict::kUnknown;
}

double GateLayer::score() const {
  double sum = 0.0, num_counted = 0.0;
  for (const GateCheck& check : checks) {
    if (!check.counts()) continue;
    sum += check.score();
    num_counted += 1.0;
  }
  return verdict() == GateVerdict::kUnknown || num_counted == 0.0 ? 0.0 : sum / num_counted;
}

bool GateReport::passed() const {
  return !layers.empty() &&
         std::ranges::all_of(layers, [](const GateLayer& layer) { return layer.verdict() == GateVerdict::kPassed; });
}

double GateReport::score() const {
  double sum = 0.0, weights = 0.0;
  for (const GateLayer& layer : layers) {
    sum += layer.weight * layer.score();
    weights += layer.weight;
  }
  return weights > 0.0 ? sum / weights : 0.0;
}

}  // namespace kvasir::eval
