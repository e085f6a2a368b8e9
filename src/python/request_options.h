// A request's options besides its prompt: how its tokens are chosen, and how its keys and values are kept.
#pragma once

#include <string_view>
#include <vector>

#include "kvasir/request.h"
#include "python/field.h"

namespace kvasir::python {

// The values are the engine's to check. Raises a UsageError for an unknown name and for a wrong type.
Request read_request(std::vector<TokenId> prompt, const nb::dict& options);

std::vector<std::string_view> option_names();

}  // namespace kvasir::python
