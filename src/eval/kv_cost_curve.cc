#include "eval/kv_cost_curve.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "eval/kv_text.h"

namespace kvasir::eval {
namespace {

constexpr double kDeviations = 2.0;
constexpr double kLeastKl = 1e-9;  // so that its logarithm is one

// Weighted by 1 / kl^2, so that errors are relative.
void fit_line(std::span<const KvCostSample> samples, io::KvCostCurve& curve) {
  double w = 0.0, x = 0.0, y = 0.0, xx = 0.0, xy = 0.0;
  for (const KvCostSample& sample : samples) {
    const double weight = 1.0 / std::pow(std::max(kLeastKl, sample.kl), 2.0);
    w += weight;
    x += weight * sample.planned;
    y += weight * sample.kl;
    xx += weight * sample.planned * sample.planned;
    xy += weight * sample.planned * sample.kl;
  }
  const double spread = w * xx - x * x;
  const double slope = spread > 0.0 ? (w * xy - x * y) / spread : 0.0;
  const double at_nothing = (y - slope * x) / w;
  if (slope > 0.0 && at_nothing >= 0.0) {
    curve.kl_per_cost = slope;
    curve.least_kl = at_nothing;
  } else if (slope > 0.0) {
    curve.kl_per_cost = xx > 0.0 ? xy / xx : 0.0;
  } else {
    curve.least_kl = y / w;
  }
}

}  // namespace

io::KvCostCurve fit_cost_curve(std::span<const KvCostSample> samples) {
  std::map<double, std::vector<KvCostSample>, std::greater<>> by_budget;
  for (const KvCostSample& sample : samples) by_budget[sample.budget].push_back(sample);
  io::KvCostCurve curve{.policy = kCostPolicy};
  std::vector<double> log_ratios;  // means, by point
  double squares = 0.0, freedom = 0.0;
  for (const auto& [budget, of_budget] : by_budget) {
    const auto count = static_cast<double>(of_budget.size());
    io::KvCostCurve::Point point{.budget = budget};
    double log_ratio = 0.0;
    for (const KvCostSample& sample : of_budget) {
      point.planned += sample.planned / count;
      point.kl += sample.kl / count;
      log_ratio += sample.log_ratio / count;
    }
    for (const KvCostSample& sample : of_budget) {
      squares += std::pow(sample.log_ratio - log_ratio, 2.0) / std::max(kLeastKl, point.kl);
    }
    freedom += count - 1.0;
    curve.num_windows = std::max(curve.num_windows, static_cast<std::int32_t>(of_budget.size()));
    curve.points.push_back(point);
    log_ratios.push_back(log_ratio);
  }
  const double squared_deviation = freedom > 0.0 ? squares / freedom : 0.0;  // over the divergence
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    io::KvCostCurve::Point& point = curve.points[i];
    const double of_one_more = squared_deviation * point.kl * (1.0 + 1.0 / curve.num_windows);
    point.ratio_low = std::exp(log_ratios[i] - kDeviations * std::sqrt(of_one_more));
    point.ratio_high = std::exp(log_ratios[i] + kDeviations * std::sqrt(of_one_more));
  }
  fit_line(samples, curve);
  return curve;
}

Result<io::KvCostCurve> measure_cost_curve(Engine& engine, std::span<const std::vector<TokenId>> windows,
                                           std::span<const std::vector<KvPlanTrial>> trials,
                                           const std::function<void(double)>& progress, const KeepGoing& keep_going) {
  std::vector<KvCostSample> samples;
  const auto total = static_cast<double>(windows.size() * kCostBudgets.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    KVASIR_TRY(const FullCacheScore full, score_full_cache(engine, kStreaming, windows[i], keep_going));
    for (const double budget : kCostBudgets) {
      KVASIR_TRY(const KvRow row, measure_kv_policy(engine, kStreaming, windows[i], full,
                                                    {.policy = kCostPolicy, .budget = budget, .quality = KvQuality::kBestEffort}, keep_going));
      samples.push_back({.budget = budget,
                         .planned = mean_planned_cost(trials[i], budget),
                         .kl = std::max(0.0, row.kl),
                         .log_ratio = row.nll - row.full_nll});
      progress(static_cast<double>(samples.size()) / total);
    }
  }
  return fit_cost_curve(samples);
}

std::optional<KvExpectation> expected_cost(const io::KvCostCurve& curve, double budget) {
  if (curve.points.empty() || budget < curve.points.back().budget) return std::nullopt;
  const auto below = std::ranges::find_if(curve.points, [&](const auto& point) { return point.budget <= budget; });
  if (below == curve.points.begin()) return KvExpectation{below->kl, below->ratio_low, below->ratio_high};
  const auto above = below - 1;
  const double place = (budget - below->budget) / (above->budget - below->budget);
  // Costs grow by a factor from one budget to the next.
  const auto between = [&](double from, double to) {
    return std::exp((1.0 - place) * std::log(std::max(kLeastKl, from)) + place * std::log(std::max(kLeastKl, to)));
  };
  return KvExpectation{between(below->kl, above->kl), between(below->ratio_low, above->ratio_low),
                       between(below->ratio_high, above->ratio_high)};
}

}  // namespace kvasir::eval
