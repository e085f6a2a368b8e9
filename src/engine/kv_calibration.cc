#include "engine/kv_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include "base/printable.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "kv/policy/forecast_network.h"

namespace kvasir {
namespace {

template <std::size_t size>
void copy_numbers(const std::vector<double>& from, std::size_t begin, std::array<float, size>& to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = static_cast<float>(from[begin + i]);
}

// Each group's network has the heads of the group, in their order.
Status apply_forecast(const std::string& path, const io::KvCalibration& calibration, kv::KvCacheConfig& kv) {
  using Network = kv::ForecastNetwork;
  if (calibration.forecast.output_biases.empty()) return {};
  const auto heads = static_cast<std::size_t>(kv.num_full_cells());
  const bool knows_asked = !calibration.forecast.asked_biases.empty() || !calibration.forecast.asked_weights.empty();
  if (calibration.forecast.output_biases.size() != heads || calibration.forecast.hidden_biases.size() != heads * Network::kNumHidden ||
      calibration.forecast.output_weights.size() != Network::kNumHidden ||
      calibration.forecast.input_weights.size() != Network::kNumInputs * Network::kNumHidden ||
      calibration.forecast.asked_biases.size() != (knows_asked ? heads : 0) ||
      calibration.forecast.asked_weights.size() != (knows_asked ? Network::kNumHidden : 0)) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: its forecast is not of {} KV heads, {} units and {} inputs",
                                                       printable_line(path), heads, Network::kNumHidden, Network::kNumInputs));
  }
  std::size_t head = 0;
  for (kv::LayerGroup& group : kv.groups) {
    if (!group.is_full()) continue;
    const auto network = std::make_shared<Network>();
    for (std::size_t i = 0; i < Network::kNumInputs; ++i) {
      copy_numbers(calibration.forecast.input_weights, i * Network::kNumHidden, network->input_weights[i]);
    }
    copy_numbers(calibration.forecast.output_weights, 0, network->output_weights);
    if (knows_asked) copy_numbers(calibration.forecast.asked_weights, 0, network->asked_weights);
    for (std::int32_t cell = 0; cell < group.cells_per_block; ++cell, ++head) {
      copy_numbers(calibration.forecast.hidden_biases, head * Network::kNumHidden, network->hidden_biases.emplace_back());
      network->output_biases.push_back(static_cast<float>(calibration.forecast.output_biases[head]));
      if (knows_asked) network->asked_biases.push_back(static_cast<float>(calibration.forecast.asked_biases[head]));
    }
    group.network = network;
  }
  return {};
}

std::unexpected<Error> of_another_model(const std::string& path) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: of another model than this file's; kvasir calibrate-kv writes it anew", printable_line(path)));
}

Status apply_beside(const std::string& model_path, bool with_forecast, kv::KvCacheConfig& kv) {
  const std::string path = io::kv_calibration_path(model_path);
  KVASIR_TRY(const auto calibration, io::read_kv_calibration(path));
  if (!calibration) return {};
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  if (!calibration->model.empty() && calibration->model != fingerprint) return of_another_model(path);
  for (const auto& [name, cost] : calibration->costs) {
    const auto format = kv::format_named(name);
    if (!format) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: no KV format is called '{}'; kvasir calibrate-kv writes it anew",
                                    printable_line(path), printable_line(name)));
    }
    kv.format_costs[*format] = static_cast<float>(cost);
  }
  if (with_forecast) KVASIR_CHECKED(apply_forecast(path, *calibration, kv));
  if (calibration->head_weights.empty()) return {};
  if (const std::int64_t num_heads = kv.num_full_cells(); std::ssize(calibration->head_weights) != num_heads) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: weights of {} KV heads, the model has {} without a window; kvasir "
                                  "calibrate-kv writes it anew",
                                  printable_line(path), calibration->head_weights.size(), num_heads));
  }
  auto weight = calibration->head_weights.begin();
  for (kv::LayerGroup& group : kv.groups) {
    if (!group.is_full()) continue;
    group.cell_weights.assign(weight, weight + group.cells_per_block);
    weight += group.cells_per_block;
  }
  return {};
}

Status apply_forecast_of(const std::string& path, const std::string& model_path, kv::KvCacheConfig& kv) {
  KVASIR_TRY(const io::KvCalibration calibration, io::read_kv_forecast(path));
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  if (calibration.model != fingerprint) return of_another_model(path);
  return apply_forecast(path, calibration, kv);
}

}  // namespace

Status apply_kv_calibration(const std::string& model_path, const std::string& forecast_path, kv::KvCacheConfig& kv) {
  KVASIR_CHECKED(apply_beside(model_path, forecast_path.empty(), kv));
  return forecast_path.empty() ? Status{} : apply_forecast_of(forecast_path, model_path, kv);
}

io::KvForecastNumbers kv_forecast_numbers(const kv::ForecastNetwork& network) {
  io::KvForecastNumbers numbers;
  for (const auto& weights : network.input_weights) std::ranges::copy(weights, std::back_inserter(numbers.input_weights));
  for (const auto& biases : network.hidden_biases) std::ranges::copy(biases, std::back_inserter(numbers.hidden_biases));
  std::ranges::copy(network.output_weights, std::back_inserter(numbers.output_weights));
  std::ranges::copy(network.output_biases, std::back_inserter(numbers.output_biases));
  std::ranges::copy(network.asked_weights, std::back_inserter(numbers.asked_weights));
  std::ranges::copy(network.asked_biases, std::back_inserter(numbers.asked_biases));
  return numbers;
}

}  // namespace kvasir
