// The cost of each KV format for a model, measured once and kept in a file beside the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "kvasir/result.h"

namespace kvasir::io {

// kv::ForecastNetwork's numbers, those of units behind each other. Empty: not learned.
struct KvForecastNumbers {
  std::vector<double> input_weights = {}, hidden_biases = {}, output_weights = {}, output_biases = {};
  std::vector<double> asked_weights = {}, asked_biases = {};  // both empty in files of older versions
};

// What budgets of a policy cost a model, on windows of a text whose full cache is known. Empty: not measured.
struct KvCostCurve {
  struct Point {
    double budget = 1.0;                       // a share of the bytes in f16
    double planned = 0.0;                      // mean cost of an act by the policy's forecast
    double kl = 0.0;                           // mean divergence from the full cache, in nats
    double ratio_low = 1.0, ratio_high = 1.0;  // of perplexities, where a window more is expected
  };
  std::string policy = {};
  std::int32_t num_windows = 0;
  // A budget's divergence is about least_kl + kl_per_cost x its planned cost.
  double least_kl = 0.0, kl_per_cost = 0.0;
  std::vector<Point> points = {};  // the largest budget first
};

// Which forecast it is, where it was learned from traffic.
struct KvLearnedForecast {
  std::int64_t version = 0;        // 0: it was not
  std::int64_t num_rows = 0;       // that it was learned from
  std::int64_t num_sequences = 0;  // that it was measured on, none of which it was learned from
  double cost_ratio = 1.0;         // planned costs on these, to those of the forecast before
};

// By the format's name: what attention that is paid to a cell of it loses, in the unit of kv::FormatCosts.
struct KvCalibration {
  std::string model;  // its fingerprint; empty in files of older versions
  std::map<std::string, double> costs;
  // How much the model suffers when attention to a KV head is wrong, for each head of the layers without a
  // window. The mean is 1. Empty: not measured.
  std::vector<double> head_weights = {};
  KvForecastNumbers forecast = {};
  KvCostCurve cost_curve = {};
  KvLearnedForecast learned = {};
};

// The path of the calibration of the model in this file.
std::string kv_calibration_path(const std::string& model_path);

// Nothing where there is none. Error (kBadFile) naming the file: it is none of write_kv_calibration's.
Result<std::optional<KvCalibration>> read_kv_calibration(const std::string& path);
// A calibration that has a forecast. Error (kBadFile) naming the file: there is none, or it has no forecast.
Result<KvCalibration> read_kv_forecast(const std::string& path);
// Its members as an object: {policy, windows, least_kl, kl_per_cost, points: [{budget, planned, kl, ratio_low, ratio_high}]}.
void write_cost_curve(JsonWriter& json, const KvCostCurve& curve);
// Replaces what was there. Error: kMachine.
Status write_kv_calibration(const std::string& path, const KvCalibration& calibration);

}  // namespace kvasir::io
