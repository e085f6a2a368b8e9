// The cost of each KV format for a model, measured once and kept in a file beside the model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

// kv::ForecastNetwork's numbers, those of units behind each other. Empty: not learned.
struct KvForecastNumbers {
  std::vector<double> input_weights = {}, hidden_biases = {}, output_weights = {}, output_biases = {};
};

// By the format's name: what attention that is paid to a cell of it loses, in the unit of kv::FormatCosts.
struct KvCalibration {
  std::string model;  // its fingerprint; empty in files of older versions
  std::map<std::string, double> costs;
  // How much the model suffers when attention to a KV head is wrong, for each head of the layers without a
  // window. The mean is 1. Empty: not measured.
  std::vector<double> head_weights = {};
  KvForecastNumbers forecast = {};
};

// The path of the calibration of the model in this file.
std::string kv_calibration_path(const std::string& model_path);

// Nothing where there is none. Error (kBadFile) naming the file: it is none of write_kv_calibration's.
Result<std::optional<KvCalibration>> read_kv_calibration(const std::string& path);
// Replaces what was there. Error: kMachine.
Status write_kv_calibration(const std::string& path, const KvCalibration& calibration);

}  // namespace kvasir::io
