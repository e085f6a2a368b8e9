// The kinds of requests that a model answers.
#pragma once

#include <string_view>
#include <vector>

#include "server/api/api_context.h"

namespace kvasir::server::api {

// In the words of Ollama: completion, embedding, tools, thinking, insert. Empty: the model was never loaded.
std::vector<std::string_view> capabilities_of(const ApiContext& context);

}  // namespace kvasir::server::api
