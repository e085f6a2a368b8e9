// kvasir kv shadows: how far answers were from the exact ones, from a log that --kv-log wrote.
#pragma once

#include <CLI/App.hpp>

#include "cli/verb.h"

namespace kvasir::cli {

// Below the verb `kv`.
void add_kv_shadows(CLI::App& verb, Context& context);

}  // namespace kvasir::cli
