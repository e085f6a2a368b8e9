#include "io/kv_calibration.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::io {
namespace {

constexpr double kMostCost = 1e6;  // far above what any format of any model costs

constexpr const char* kModelKey = "model";
constexpr const char *kCostsKey = "kv_format_costs", *kWeightsKey = "kv_head_weights", *kForecastKey = "kv_forecast", *kCurveKey = "kv_cost_curve", *kLearnedKey = "kv_learned";

struct ForecastPart {
  const char* key;
  std::vector<double> KvForecastNumbers::*numbers;
  bool may_lack = false;  // as files of older versions do
};
constexpr ForecastPart kForecastParts[] = {{"input_weights", &KvForecastNumbers::input_weights},
                                           {"hidden_biases", &KvForecastNumbers::hidden_biases},
                                           {"output_weights", &KvForecastNumbers::output_weights},
                                           {"output_biases", &KvForecastNumbers::output_biases},
                                           {"asked_weights", &KvForecastNumbers::asked_weights, true},
                                           {"asked_biases", &KvForecastNumbers::asked_biases, true}};

std::unexpected<Error> bad_file(const std::string& path, std::string_view what) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: {}; kvasir calibrate-kv writes it anew", printable_line(path), what));
}

Status read_forecast(const std::string& path, const simdjson::dom::element& forecast, KvCalibration& calibration) {
  for (const auto& [key, numbers, may_lack] : kForecastParts) {
    simdjson::dom::array array;
    const simdjson::error_code error = forecast[key].get_array().get(array);
    if (may_lack && error == simdjson::NO_SUCH_FIELD) continue;
    if (error != simdjson::SUCCESS) {
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

struct CurveMember {
  const char* key;
  double KvCostCurve::Point::*number;
};
constexpr CurveMember kCurveMembers[] = {{"budget", &KvCostCurve::Point::budget},
                                         {"planned", &KvCostCurve::Point::planned},
                                         {"kl", &KvCostCurve::Point::kl},
                                         {"ratio_low", &KvCostCurve::Point::ratio_low},
                                         {"ratio_high", &KvCostCurve::Point::ratio_high}};

// A number from 0 to kMostCost.
bool read_amount(const simdjson::dom::element& json, const char* key, double& number) {
  return json[key].get_double().get(number) == simdjson::SUCCESS && number >= 0.0 && number <= kMostCost;
}

Status read_cost_curve(const std::string& path, const simdjson::dom::element& json, KvCostCurve& curve) {
  std::string_view policy;
  std::int64_t num_windows = 0;
  simdjson::dom::array points;
  if (json["policy"].get_string().get(policy) != simdjson::SUCCESS || json["windows"].get_int64().get(num_windows) != simdjson::SUCCESS ||
      num_windows < 1 || num_windows > std::numeric_limits<std::int32_t>::max() || !read_amount(json, "least_kl", curve.least_kl) ||
      !read_amount(json, "kl_per_cost", curve.kl_per_cost) || json["points"].get_array().get(points) != simdjson::SUCCESS) {
    return bad_file(path, fmt::format("{} is not whole", kCurveKey));
  }
  curve.policy = policy;
  curve.num_windows = static_cast<std::int32_t>(num_windows);
  for (const simdjson::dom::element of_point : points) {
    KvCostCurve::Point point;
    for (const auto& [key, number] : kCurveMembers) {
      if (!read_amount(of_point, key, point.*number)) {
        return bad_file(path, fmt::format("{} of a point in {} is no number from 0 to {}", key, kCurveKey, kMostCost));
      }
    }
    if (!curve.points.empty() && point.budget >= curve.points.back().budget) {
      return bad_file(path, fmt::format("budgets in {} do not fall", kCurveKey));
    }
    curve.points.push_back(point);
  }
  return {};
}

Status read_learned(const std::string& path, const simdjson::dom::element& json, KvLearnedForecast& learned) {
  const auto read_count = [&](const char* key, std::int64_t& count) { return json[key].get_int64().get(count) == simdjson::SUCCESS && count >= 0; };
  const bool is_whole = read_count("version", learned.version) && read_count("rows", learned.num_rows) &&
                        read_count("sequences", learned.num_sequences) && read_amount(json, "cost_ratio", learned.cost_ratio);
  return is_whole ? Status{} : bad_file(path, fmt::format("{} is not whole", kLearnedKey));
}

void write_learned(JsonWriter& json, const KvLearnedForecast& learned) {
  json.key(kLearnedKey)
      .begin_object()
      .member("version", learned.version)
      .member("rows", learned.num_rows)
      .member("sequences", learned.num_sequences)
      .member("cost_ratio", learned.cost_ratio)
      .end_object();
}

}  // namespace

void write_cost_curve(JsonWriter& json, const KvCostCurve& curve) {
  json.begin_object()
      .member("policy", curve.policy)
      .member("windows", curve.num_windows)
      .member("least_kl", curve.least_kl)
      .member("kl_per_cost", curve.kl_per_cost)
      .key("points")
      .begin_array();
  for (const KvCostCurve::Point& point : curve.points) {
    json.begin_object();
    for (const auto& [key, number] : kCurveMembers) json.member(key, point.*number);
    json.end_object();
  }
  json.end_array().end_object();
}

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
  simdjson::dom::element weights, forecast, curve, learned;
  if (file[kForecastKey].get(forecast) == simdjson::SUCCESS) KVASIR_CHECKED(read_forecast(path, forecast, calibration));
  if (file[kCurveKey].get(curve) == simdjson::SUCCESS) KVASIR_CHECKED(read_cost_curve(path, curve, calibration.cost_curve));
  if (file[kLearnedKey].get(learned) == simdjson::SUCCESS) KVASIR_CHECKED(read_learned(path, learned, calibration.learned));
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

Result<KvCalibration> read_kv_forecast(const std::string& path) {
  KVASIR_TRY(auto calibration, read_kv_calibration(path));
  if (!calibration) return make_error(ErrorKind::kBadFile, fmt::format("{}: there is no such file", printable_line(path)));
  if (!calibration->forecast.output_biases.empty()) return *std::move(calibration);
  return make_error(ErrorKind::kBadFile, fmt::format("{}: it has no forecast; kvasir calibrate-kv --forecast learns one", printable_line(path)));
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
    for (const auto& [key, numbers, may_lack] : kForecastParts) {
      if (may_lack && (calibration.forecast.*numbers).empty()) continue;
      json.key(key).begin_array();
      for (const double number : calibration.forecast.*numbers) json.value(number);
      json.end_array();
    }
    json.end_object();
  }
  if (!calibration.cost_curve.points.empty()) write_cost_curve(json.key(kCurveKey), calibration.cost_curve);
  if (calibration.learned.version > 0) write_learned(json, calibration.learned);
  json.end_object();
  text += '\n';
  return replace_text_file(path, text);
}

}  // namespace kvasir::io
