// How much longer a normalizer may make a text.
#pragma once

#include "kvasir/result.h"
#include "text/hf/json_view.h"

namespace kvasir::text::hf {

// A normalised text has at most so many times the bytes of the text.
inline constexpr double kMaxNormalizerGrowth = 4096.0;

// kBadFile: the normalizer may make a text longer than that. Requires: `json` is a normalizer that can be read.
Status check_normalizer_growth(const JsonView& json);

}  // namespace kvasir::text::hf
