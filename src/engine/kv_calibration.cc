#include "engine/kv_calibration.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"

namespace kvasir {

Status apply_kv_calibration(const std::string& model_path, kv::KvCacheConfig& kv) {
  const std::string path = io::kv_calibration_path(model_path);
  KVASIR_TRY(const auto calibration, io::read_kv_calibration(path));
  if (!calibration) return {};
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  if (!calibration->model.empty() && calibration->model != fingerprint) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: of another model than this file's; kvasir "
                                                       "calibrate-kv writes it anew",
                                                       printable_line(path)));
  }
  for (const auto& [name, cost] : calibration->costs) {
    const auto format = kv::format_named(name);
    if (!format) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: no KV format is called '{}'; kvasir calibrate-kv writes it anew",
                                    printable_line(path), printable_line(name)));
    }
    kv.format_costs[*format] = static_cast<float>(cost);
  }
  if (calibration->head_weights.empty()) return {};
  std::int32_t num_heads = 0;
  for (const kv::LayerGroup& group : kv.groups) num_heads += group.is_full() ? group.cells_per_block : 0;
  if (std::ssize(calibration->head_weights) != num_heads) {
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

}  // namespace kvasir
