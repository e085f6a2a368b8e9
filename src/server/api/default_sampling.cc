#include "server/api/default_sampling.h"

#include <cmath>
#include <limits>

namespace kvasir::server::api {
namespace {

constexpr std::int32_t kUnsetTopK = -1;
constexpr float SamplingParams::*kFilledNumbers[] = {&SamplingParams::temperature, &SamplingParams::top_p,
                                                     &SamplingParams::min_p,
                                                     &SamplingParams::repetition_penalty};

}  // namespace

SamplingParams unset_sampling() {
  SamplingParams sampling;
  for (const auto member : kFilledNumbers) sampling.*member = std::numeric_limits<float>::quiet_NaN();
  sampling.top_k = kUnsetTopK;
  return sampling;
}

void fill_sampling(SamplingParams& sampling, const SamplingParams& defaults) {
  for (const auto member : kFilledNumbers) {
    if (std::isnan(sampling.*member)) sampling.*member = defaults.*member;
  }
  if (sampling.top_k == kUnsetTopK) sampling.top_k = defaults.top_k;
}

}  // namespace kvasir::server::api
