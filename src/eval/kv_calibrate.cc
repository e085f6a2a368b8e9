#include "eval/kv_calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "eval/kv_text.h"

namespace kvasir::eval {
namespace {

constexpr std::array kFormats = {"q8",    "k8v4", "k4cv4", "k4v4",  "k4cv3", "k4v3",
                                 "k3cv3", "k3v3", "k4v2",  "k3cv2", "k3v2"};

// Divergence grows with the loss of attention. The policies were tuned on SmolLM2-135M; this factor gives its
// finer formats the costs that the tuning used. Any rounding causes some divergence, 8 bits no more than
// others; that is no cost of a format.
constexpr double kCostPerNat = 4.5;
// Short windows, for there are many formats and more heads, and many of their logits.
constexpr KvProtocol kOfFormats = {"", 256, 2};
constexpr KvProtocol kOfHeads = {"", 128, 1};
constexpr std::size_t kHeadsWindowTokens = 512;
constexpr double kLeastCost = 0.002;

// The window with its end replaced by what was said near its beginning: to say it again a model must find it
// again by its keys, which plain text hardly asks for.
std::vector<TokenId> echo_of(std::span<const TokenId> window, const KvProtocol& protocol) {
  constexpr std::size_t kFirst = 64;
  std::vector<TokenId> echo(window.begin(), window.end());
  const auto count = static_cast<std::size_t>(protocol.num_scored_tokens);
  std::ranges::copy(window.subspan(kFirst, count), echo.end() - static_cast<std::ptrdiff_t>(count));
  return echo;
}

constexpr const char* kCoarsest = "k3v2";
// A layer shows something when it diverges so many times as much as the middle one, where all is rounding.
constexpr double kShows = 1.5;
// Another text may need a head that this text does not need.
constexpr double kLeastWeight = 0.1;

// KV heads [begin, end) and what the model diverges by when they are coarse.
struct Heads {
  std::int32_t begin, end;
  double kl = 0.0;
};

std::vector<Heads> layers_of(const ModelInfo& model) {
  std::vector<Heads> layers;
  std::int32_t begin = 0;
  for (const KvGroupInfo& group : model.kv_groups) {
    for (std::int32_t i = 0; group.window_tokens == 0 && i < group.num_layers; ++i) {
      layers.push_back({begin, begin + group.num_kv_heads});
      begin += group.num_kv_heads;
    }
  }
  return layers;
}

// The heads of layers that show something one by one, the others' layer by layer.
std::vector<Heads> heads_of(const std::vector<Heads>& layers) {
  std::vector<double> divergences;
  for (const Heads& layer : layers) divergences.push_back(layer.kl);
  const auto middle = divergences.begin() + std::ssize(divergences) / 2;
  std::ranges::nth_element(divergences, middle);
  std::vector<Heads> heads;
  for (const Heads& layer : layers) {
    if (layer.end - layer.begin == 1 || layer.kl < kShows * *middle) {
      heads.push_back(layer);
      continue;
    }
    for (std::int32_t head = layer.begin; head < layer.end; ++head) heads.push_back({head, head + 1});
  }
  return heads;
}

std::vector<double> weights_of(const std::vector<Heads>& heads) {
  double sum = 0.0;
  for (const Heads& some : heads) sum += some.kl * (some.end - some.begin);
  std::vector<double> weights;
  for (const Heads& some : heads) {
    const double mean = sum / heads.back().end;
    const double weight = mean > 0.0 ? std::max(kLeastWeight, some.kl / mean) : 1.0;
    weights.insert(weights.end(), static_cast<std::size_t>(some.end - some.begin), weight);
  }
  return weights;
}

}  // namespace

Result<std::vector<KvFormatMeasurement>> measure_kv_formats(Engine& engine, bool has_key_components,
                                                            std::span<const std::vector<TokenId>> texts,
                                                            const std::function<void(double)>& progress,
                                                            const KeepGoing& keep_going) {
  std::vector<std::vector<TokenId>> windows;
  for (const std::vector<TokenId>& text : texts) {
    windows.push_back(text);
    windows.push_back(echo_of(text, kOfFormats));
  }
  std::vector<KvFormatMeasurement> formats;
  for (const char* name : kFormats) formats.push_back({.format = name, .bytes_share = 0.0, .ratio = 0.0});
  if (has_key_components) formats.push_back({.format = "k2pv2", .bytes_share = 0.0, .ratio = 0.0});
  const auto num_windows = static_cast<double>(windows.size());
  const double num_runs = num_windows * (static_cast<double>(formats.size()) + 1);
  double num_done = 0;
  for (const std::vector<TokenId>& window : windows) {
    KVASIR_TRY(const FullCacheScore full, score_full_cache(engine, kOfFormats, window, keep_going));
    progress(++num_done / num_runs);
    for (KvFormatMeasurement& format : formats) {
      KVASIR_TRY(const KvRow row,
                 measure_kv_policy(engine, kOfFormats, window, full, {.policy = format.format}, keep_going));
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

Result<std::vector<double>> weigh_kv_heads(Engine& engine, std::span<const TokenId> text,
                                           const std::function<void(double)>& progress,
                                           const KeepGoing& keep_going) {
  std::vector<Heads> layers = layers_of(engine.model_info());
  if (layers.empty()) return {};
  const std::vector<TokenId> window = echo_of(text.first(kHeadsWindowTokens), kOfHeads);
  KVASIR_TRY(const FullCacheScore full, score_full_cache(engine, kOfHeads, window, keep_going));
  const auto measure = [&](Heads& heads) -> Status {
    KVASIR_TRY(const KvRow row,
               measure_kv_policy(engine, kOfHeads, window, full,
                                 {.policy = kCoarsest, .first_head = heads.begin, .end_head = heads.end},
                                 keep_going));
    heads.kl = row.kl;
    return {};
  };
  for (std::size_t i = 0; i < layers.size(); ++i) {
    KVASIR_CHECKED(measure(layers[i]));
    progress(static_cast<double>(i + 1) / static_cast<double>(2 * layers.size()));
  }
  std::vector<Heads> heads = heads_of(layers);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (heads[i].kl == 0.0) KVASIR_CHECKED(measure(heads[i]));
    progress(0.5 + static_cast<double>(i + 1) / static_cast<double>(2 * heads.size()));
  }
  return weights_of(heads);
}

}  // namespace kvasir::eval
