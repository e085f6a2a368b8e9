#include "eval/kv_calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "eval/kv_text.h"

namespace kvasir::eval {
namespace {

constexpr std::array kFormats = {"q8",    "k8v4", "k4cv4", "k4v4",  "k4cv3", "k4v3",
                                 "k3cv3", "k3v3", "k4v2",  "k3cv2", "k3v2"};

// Divergence grows with what attention loses; the policies were tuned on SmolLM2-135M, whose finer formats this
// factor gives the costs that they were tuned with. The divergence that any rounding causes, of which 8 bits
// have no more, is no cost of a format.
constexpr double kCostPerNat = 4.5;
constexpr double kLeastCost = 0.002;

// The window with its end replaced by what was said near its beginning: to say it again a model must find it
// again by its keys, which plain text hardly asks for.
std::vector<TokenId> echo_of(std::span<const TokenId> window) {
  constexpr std::size_t kFirst = 64;
  std::vector<TokenId> echo(window.begin(), window.end());
  const auto count = static_cast<std::size_t>(kCompressThenScore.num_scored_tokens);
  std::ranges::copy(window.subspan(kFirst, count), echo.end() - static_cast<std::ptrdiff_t>(count));
  return echo;
}

}  // namespace

Result<std::vector<KvFormatMeasurement>> measure_kv_formats(Engine& engine,
                                                            std::span<const std::vector<TokenId>> texts,
                                                            const std::function<void(double)>& progress,
                                                            const KeepGoing& keep_going) {
  std::vector<std::vector<TokenId>> windows;
  for (const std::vector<TokenId>& text : texts) {
    windows.push_back(text);
    windows.push_back(echo_of(text));
  }
  std::vector<KvFormatMeasurement> formats;
  for (const char* name : kFormats) formats.push_back({.format = name, .bytes_share = 0.0, .ratio = 0.0});
  const auto num_windows = static_cast<double>(windows.size());
  const double num_runs = num_windows * (static_cast<double>(kFormats.size()) + 1);
  double num_done = 0;
  for (const std::vector<TokenId>& window : windows) {
    KVASIR_TRY(const FullCacheScore full, score_full_cache(engine, kCompressThenScore, window, keep_going));
    progress(++num_done / num_runs);
    for (KvFormatMeasurement& format : formats) {
      KVASIR_TRY(const KvRow row, measure_kv_policy(engine, kCompressThenScore, window, full,
                                                    {.policy = format.format}, keep_going));
      format.kl += row.kl / num_windows;
      format.bytes_share += row.bytes_share / num_windows;
      format.ratio += (row.nll - row.full_nll) / num_windows;
      progress(++num_done / num_runs);
    }
  }
  for (KvFormatMeasurement& format : formats) {
    format.ratio = std::exp(format.ratio);
    format.cost = kLeastCost + kCostPerNat * std::max(0.0, format.kl - formats.front().kl);
  }
  return formats;
}

}  // namespace kvasir::eval
