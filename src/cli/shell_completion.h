// Scripts that teach a shell to complete Kvasir's verbs and flags.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace kvasir::cli {

// Each is a function of the parser's tree alone, so it never lags behind the flags. Offered are verbs, flags,
// the values of a flag or argument that takes one of a few, and where a model is asked for the names that
// `kvasir list` has at that moment; anything else completes as a file.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

}  // namespace kvasir::cli
