// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace kvasir::cli {

// A hint for the first argument that no verb or flag has; empty when nothing is near.
std::string suggest(const CLI::App& app, int argc, char** argv);

}  // namespace kvasir::cli
