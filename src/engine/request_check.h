// Whether a request asks for what the model can do.
#pragma once

#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir {

// Errors: kUsage naming the field and its value, kUnmet where prompt and answer exceed the context.
Status check_request(const Request& request, const ModelInfo& info, bool has_tokenizer);

}  // namespace kvasir
