// Whether a model file runs, and what about it is a guess.
#pragma once

#include <string>
#include <vector>

#include "engine/open_model.h"
#include "text/tokenizer.h"

namespace kvasir {

// Every reason why the model does not run, a line each; empty when it does. Reads no weights: only loading
// finds numbers in them that are none.
std::vector<std::string> reasons_not_to_run(const OpenedModel& model);

// A line for each guess about the file, and for what is passed over although it may matter. `tokenizer` is
// null when the model has none that works.
std::vector<std::string> notices_about(const io::WeightSource& source, const text::Tokenizer* tokenizer);

}  // namespace kvasir
