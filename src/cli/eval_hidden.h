// kvasir eval hidden: what a model's layers give for each token, as a NumPy file.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_hidden(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
