// kvasir eval kv-regret: what a KV policy's plans cost beside those that knew which attention would come.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

void add_eval_kv_regret(CLI::App& eval, Context& context);

}  // namespace kvasir::cli
