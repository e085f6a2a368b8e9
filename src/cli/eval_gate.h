// kvasir eval gate: what a change of numbers must pass before it may serve.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_gate(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
