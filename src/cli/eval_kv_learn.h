// kvasir eval kv-learn: learning from traffic, played over recorded shadows.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_kv_learn(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
