// Sampling that a request does not mention: the model's defaults stand in.
#pragma once

#include "kvasir/sampling_params.h"

namespace kvasir::server::api {

// Parameters that no request has set yet. Values that none could set mark what defaults may fill in.
SamplingParams unset_sampling();

// Gives what is still unset the value of `defaults`.
void fill_sampling(SamplingParams& sampling, const SamplingParams& defaults);

}  // namespace kvasir::server::api
