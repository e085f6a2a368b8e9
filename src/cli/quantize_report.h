// What `kvasir quantize` says about a file.
#pragma once

#include <optional>
#include <string>

#include "compress/quantize_forecast.h"
#include "compress/quantize_plan.h"
#include "compress/quantizer.h"
#include "eval/divergence.h"

namespace kvasir::cli {

struct QuantizeReport {
  std::string in, out;  // `out` is empty: a dry run
  const compress::QuantizePlan* plan = nullptr;
  const compress::QuantizedFile* file = nullptr;  // null: a dry run
  std::optional<compress::QuantizeForecast> forecast = {};
  std::optional<eval::Divergence> verify = {};
  std::int64_t calibration_tokens = 0;
  std::optional<double> predicted_kl = {};  // of a byte budget
  double seconds = 0.0;
  bool is_rejected = false;
};

// Whether the divergence is what files of such types have: several times what was measured on small models.
bool is_expected(const compress::QuantizePlan& plan, const eval::Divergence& divergence);

// On stdout, as a table or a JSON document. Returns the exit code.
int print_quantize_report(const QuantizeReport& report, bool as_json, int exit_code);

}  // namespace kvasir::cli
