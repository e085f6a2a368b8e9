#include "cli/machine_report.h"

#include <fmt/format.h>

#include "base/machine.h"

namespace kvasir::cli {

void write_limits(JsonWriter& json, const MachineLimits& limits) {
  json.begin_object()
      .member("read_gb_s", limits.read_gb_s)
      .member("int8_gmac_s", limits.int8_gmac_s)
      .member("fp32_gflop_s", limits.fp32_gflop_s)
      .end_object();
}

std::string describe_limits(const MachineLimits& limits) {
  return fmt::format("reads {:.1f} GB/s, int8 {:.0f} GMAC/s, fp32 {:.0f} GFLOP/s with {} thread{}",
                     limits.read_gb_s, limits.int8_gmac_s, limits.fp32_gflop_s, limits.num_threads,
                     limits.num_threads == 1 ? "" : "s");
}

Result<MachineLimits> measure_limits(int threads, ProbeScope scope) {
  return measure_machine_limits(threads > 0 ? threads : usable_physical_cores(), scope);
}

}  // namespace kvasir::cli
