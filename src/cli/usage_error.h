// The message for a command line that did not parse.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kvasir::cli {

// The fault of a command line that did not parse, as one line: the first verb that does not exist, else the
// parser's own words, with the nearest known verb or flag when there is one.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

}  // namespace kvasir::cli
