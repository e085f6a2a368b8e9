#include "admission/turn_scale.h"

namespace kvasir::admission {
namespace {

constexpr std::int32_t kChunkTokens = 512;
constexpr double kUsualTargetMs = 2000.0;
constexpr double kLeastScale = 1.0 / 16;

}  // namespace

double turn_scale(const StepTimeModel& step_times, double tenant_quantum_tokens, double ttft_target_ms) {
  StepWork chunk;
  chunk.add_chunk(0, kChunkTokens);
  const double ms = step_times.predict_ms(chunk) / kChunkTokens * tenant_quantum_tokens;
  const double limit_ms = (ttft_target_ms > 0.0 ? ttft_target_ms : kUsualTargetMs) / 2;
  double scale = 1.0;
  while (scale > kLeastScale && scale * ms > limit_ms) scale /= 2;
  return scale;
}

}  // namespace kvasir::admission
