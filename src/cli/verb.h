// Parts that the verbs of the command line share: global flags, exit codes, and how a verb joins the parser.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "kvasir/result.h"

namespace kvasir::cli {

// Exit codes that scripts may rely on (docs: `kvasir --help`).
inline constexpr int kExitDone = 0;
inline constexpr int kExitNo = 1;  // it ran and the answer is no
inline constexpr int kExitUsage = 2;
inline constexpr int kExitBadFile = 3;
inline constexpr int kExitUnmet = 4;
inline constexpr int kExitMachine = 5;
inline constexpr int kExitInterrupted = 130;

// Flags that every verb takes.
struct GlobalOptions {
  std::int32_t threads = 0;  // 0: physical cores
  bool json = false;         // one JSON document on stdout, nothing else there
  std::string memory;        // e.g. "8G"; empty: half of what is available
  std::string isa;           // "ref", "avx2", "neon"; empty: the best of this host
  bool quiet = false;
  bool verbose = false;
};

// Filled while parsing: the chosen verb leaves its work in `action`, which returns the exit code.
struct Context {
  GlobalOptions options;
  std::vector<Setting> settings;  // every flag's default and where it came from
  std::function<int()> action;
};

int exit_code_of(ErrorKind kind);
// Prints `kvasir: message` as one line on stderr and returns the exit code.
int report(const Error& error);

// Sets the action of `verb` when it is the one on the command line; an Error becomes report()'s line and exit
// code.
void on_chosen(CLI::App& verb, Context& context, std::function<Result<int>()> action);

// Each verb adds its subcommand; cli/main.cc lists them.
void add_pull(CLI::App& app, Context& context);
void add_list(CLI::App& app, Context& context);
void add_show(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_rm(CLI::App& app, Context& context);
void add_run(CLI::App& app, Context& context);
void add_serve(CLI::App& app, Context& context);
void add_tokenize(CLI::App& app, Context& context);
void add_bench(CLI::App& app, Context& context);
void add_eval(CLI::App& app, Context& context);
void add_calibrate_kv(CLI::App& app, Context& context);
void add_draft(CLI::App& app, Context& context);
void add_quantize(CLI::App& app, Context& context);
void add_kv(CLI::App& app, Context& context);
void add_batch(CLI::App& app, Context& context);
void add_schema(CLI::App& app, Context& context);
void add_keys(CLI::App& app, Context& context);
void add_health(CLI::App& app, Context& context);
void add_ps(CLI::App& app, Context& context);
void add_stop(CLI::App& app, Context& context);
void add_doctor(CLI::App& app, Context& context);
void add_config(CLI::App& app, Context& context);
void add_completion(CLI::App& app, Context& context);
void add_man(CLI::App& app, Context& context);
void add_version(CLI::App& app, Context& context);

}  // namespace kvasir::cli
