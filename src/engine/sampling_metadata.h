// How the makers of a model advise to sample from it, as GGUF metadata carry it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/metadata.h"
#include "kvasir/result.h"
#include "kvasir/sampling_params.h"

namespace kvasir {

// The sampling of a request where neither it nor the model says anything. It prefers coherent text to the whole
// distribution.
SamplingParams usual_sampling();

// Keys general.sampling.*, over usual_sampling(). Empty when the file has none. Values that no request could
// give are left out.
std::optional<SamplingParams> read_sampling(const io::Metadata& metadata);

// A line for each of these keys that is left out although it would change answers.
std::vector<std::string> sampling_notices(const io::Metadata& metadata);

}  // namespace kvasir
