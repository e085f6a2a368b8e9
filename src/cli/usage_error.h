// The message for a command line that did not parse.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kvasir::cli {

// `kvasir`, or the deepest verb that the words name: `kvasir eval kv`.
std::string verb_path(const CLI::App& app, int argc, char** argv);

// The fault of a command line that did not parse, as one line: the first verb that does not exist, else the
// parser's own words, with what another program's word is called here, or the nearest known verb or flag.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv);

}  // namespace kvasir::cli
