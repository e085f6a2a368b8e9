#include "io/kv_calibration.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::io {
namespace {

constexpr double kMostCost = 1e6;  // far above what any format of any model costs

constexpr const char* kModelKey = "model";
constexpr const char *kCostsKey = "kv_format_costs", *kWeightsKey = "kv_head_weights", *kForecastKey = "kv_forecast";

struct ForecastPart {
  const char* key;
  std::vector<double> KvForecastNumbers::*numbers;
};
constexpr ForecastPart kForecastParts[] = {{"input_weights", &KvForecastNumbers::input_weights},
                                           {"hidden_biases", &KvForecastNumbers::hidden_biases},
                                           {"output_weights", &KvForecastNumbers::output_weights},
                                           {"output_biases", &KvForecastNumbers::output_biases}};

std::unexpected<Error> bad_file(const std::string& path, std::string_view what) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: {}; kvasir calibrate-kv writes it anew", printable_line(path), what));
}

Status read_forecast(const std::string& path, const simdjson::dom::element& forecast, KvCalibration& calibration) {
  for (const auto& [key, numbers] : kForecastParts) {
    simdjson::dom::array array;
    if (forecast[key].get_array().get(array) != simdjson::SUCCESS) {
      return bad_file(path, fmt::format("{} has no array {}", kForecastKey, key));
    }
    for (const simdjson::dom::element json : array) {
      double number = 0.0;
      if (json.get_double().get(number) != simdjson::SUCCESS || !(std::abs(number) <= kMostCost)) {
        return bad_file(path, fmt::format("a number of {} in {} is none from -{} to {}", key, kForecastKey, kMostCost, kMostCost));
      }
      (calibration.forecast.*numbers).push_back(number);
    }
  }
  return {};
}

}  // namespace

std::string kv_calibration_path(const std::string& model_path) { return model_path + ".kv.json"; }

Result<std::optional<KvCalibration>> read_kv_calibration(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::element file;
  simdjson::dom::object costs;
  if (parser.load(path).get(file) != simdjson::SUCCESS ||
      file[kCostsKey].get_object().get(costs) != simdjson::SUCCESS) {
    return bad_file(path, fmt::format("no JSON with an object {}", kCostsKey));
  }
  KvCalibration calibration;
  for (const auto [name, json] : costs) {
    double cost = 0.0;
    if (json.get_double().get(cost) != simdjson::SUCCESS || !(cost >= 0.0 && cost <= kMostCost)) {
      return bad_file(path, fmt::format("the cost of {} is no number between 0 and {}",
                                        printable_line(std::string(name)), kMostCost));
    }
    calibration.costs.emplace(name, cost);
  }
  // None at all: heads too small for coarse formats.
  const bool costs_nothing =
      std::ranges::none_of(calibration.costs, [](const auto& entry) { return entry.second > 0.0; });
  if (costs_nothing && !calibration.costs.empty()) return bad_file(path, "no format costs anything");
  std::string_view model;
  if (file[kModelKey].get_string().get(model) == simdjson::SUCCESS) calibration.model = model;
  simdjson::dom::element weights, forecast;
  if (file[kForecastKey].get(forecast) == simdjson::SUCCESS) KVASIR_CHECKED(read_forecast(path, forecast, calibration));
  if (file[kWeightsKey].get(weights) != simdjson::SUCCESS) return calibration;  // of an older version
  simdjson::dom::array of_heads;
  if (weights.get_array().get(of_heads) != simdjson::SUCCESS) {
    return bad_file(path, fmt::format("{} is no array", kWeightsKey));
  }
  for (const simdjson::dom::element json : of_heads) {
    double weight = 0.0;
    if (json.get_double().get(weight) != simdjson::SUCCESS || !std::isfinite(weight) || weight <= 0.0) {
      return bad_file(path, fmt::format("a weight in {} is no number above 0", kWeightsKey));
    }
    calibration.head_weights.push_back(weight);
  }
  return calibration;
}

Status write_kv_calibration(const std::string& path, const KvCalibration& calibration) {
  std::string text;
  JsonWriter json(text, JsonWriter::Style::kPretty);
  json.begin_object().member(kModelKey, calibration.model).key(kCostsKey).begin_object();
  for (const auto& [name, cost] : calibration.costs) json.member(name, cost);
  json.end_object().key(kWeightsKey).begin_array();
  for (const double weight : calibration.head_weights) json.value(weight);
  json.end_array();
  if (!calibration.forecast.output_biases.empty()) {
    json.key(kForecastKey).begin_object();
    for (const auto& [key, numbers] : kForecastParts) {
      json.key(key).begin_array();
      for (const double number : calibration.forecast.*numbers) json.value(number);
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
  text += '\n';
  return replace_text_file(path, text);
}

}  // namespace kvasir::io
