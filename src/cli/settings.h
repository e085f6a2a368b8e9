// Where a flag's value comes from when it is not given: KVASIR_* variables, then kvasir.toml, then the
// default.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::cli {

// One flag of one verb, its value in force and where that came from.
struct Setting {
  std::string verb;  // "serve", "eval.ppl"; empty: a flag of every verb
  std::string flag;  // without dashes
  std::string value;
  std::string origin;  // "default", "KVASIR_PORT", "/path/kvasir.toml", "flag"
};

// The verb of that name; null when there is none.
const CLI::App* find_verb(const CLI::App& app, std::string_view name);

// Gives every flag of the app and its verbs the value that the environment or the file has for it, as its new
// default; flags on the command line still win, and a flag that has a value so is no longer required. A flag
// `--max-num-seqs` reads KVASIR_MAX_NUM_SEQS, unless empty, then the file's [verb] max-num-seqs, then its
// top-level max-num-seqs. The file is $KVASIR_CONFIG (empty: none), else ./kvasir.toml or
// $XDG_CONFIG_HOME/kvasir/kvasir.toml, the first that exists.
// Errors: kBadFile for a file that cannot be read; kUsage for one that does not parse, a key no flag has, a
// table no verb has, a value the flag does not take.
Result<std::vector<Setting>> apply_settings(CLI::App& app);

// After parsing: what the command line itself gave the flags of every verb goes before the other sources.
void apply_flags(const CLI::App& app, std::vector<Setting>& settings);

}  // namespace kvasir::cli
