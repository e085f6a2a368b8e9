// kvasir eval search: what more tokens for an answer are worth.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_search(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
