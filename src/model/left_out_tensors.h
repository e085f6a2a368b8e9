// Tensors that files hold and a decoder of text does without.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/weight_source.h"
#include "model/config.h"

namespace kvasir::model {

// Whether a tensor may stay unused: of an image or sound encoder, of layers that predict further tokens, a
// scale of quantised activations, a buffer of constants.
bool is_left_out(std::string_view name, const ModelConfig& config);

// The names in the file for which that is so.
std::vector<std::string> left_out_tensors(const io::WeightSource& source, const ModelConfig& config);

}  // namespace kvasir::model
