// How long an answer took, as llama-server says it.
#pragma once

#include <cstdint>

#include "base/json_writer.h"
#include "kvasir/request.h"

namespace kvasir::server::api {

// {"cache_n","prompt_n","prompt_ms",...,"predicted_per_second"}. Tokens of the prompt that were cached are not among
// prompt_n.
void write_timings(JsonWriter& json, const Usage& usage, const RequestCost& cost);

}  // namespace kvasir::server::api
