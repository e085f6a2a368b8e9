// logit_bias, as OpenAI and as llama-server write it. Thread-safe: the functions keep nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kvasir/sampling_params.h"
#include "server/api/json_input.h"

namespace kvasir::server::api {

// A text and what is added to the logits of its tokens.
using TextBias = std::pair<std::string, float>;

// Reads {"token id": bias} or [[token id, bias], ...] into `sampling`; a bias of false is never. A text in an
// id's place goes to `texts`. Errors (400): no such form, more than the limit, a text where `texts` is null.
ApiStatus read_token_biases(const FieldInput& field, SamplingParams& sampling, std::vector<TextBias>* texts);

}  // namespace kvasir::server::api
