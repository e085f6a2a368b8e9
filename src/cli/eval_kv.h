// kvasir eval kv: what KV policies cost, over policies, budgets and kinds of text.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_kv(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
