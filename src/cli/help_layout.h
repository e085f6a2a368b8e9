// Where each flag stands in a verb's help, and the examples below it.
#pragma once

#include <CLI/App.hpp>

namespace kvasir::cli {

// Groups the flags of all verbs and ends each verb's help with its examples. Call it when all verbs are there.
void lay_out_help(CLI::App& app);

}  // namespace kvasir::cli
