// kvasir: one binary, a verb each file.
#include <fcntl.h>
#include <unistd.h>

// The whole of CLI11 once: its other users include App.hpp, which leaves the help and the configuration formatters out.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/build_info.h"
#include "cli/foreign_name.h"
#include "cli/help_formatter.h"
#include "cli/help_layout.h"
#include "cli/number_range.h"
#include "cli/out_of_memory.h"
#include "cli/settings.h"
#include "cli/sigbus_handler.h"
#include "cli/standard_output.h"
#include "cli/usage_error.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

void add_global_options(CLI::App& app, GlobalOptions& options) {
  app.add_option("--threads,-t", options.threads, "Worker threads (0: physical cores)")
      ->transform(whole_number(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Print one JSON document on stdout and nothing else there");
  app.add_option("--memory", options.memory, "Memory for weights, KV and workspace, e.g. 8G");
  app.add_option("--isa", options.isa, "Force the kernels: ref, avx2, avx512 or amx; on ARM ref, neon, dotprod or i8mm");
  app.add_flag("--quiet", options.quiet, "No progress, no log");
  app.add_flag("--verbose", options.verbose, "More log");
}

void add_verbs(CLI::App& app, Context& context) {
  add_run(app, context);
  add_serve(app, context);
  add_pull(app, context);
  add_list(app, context);
  add_show(app, context);
  add_plan(app, context);
  add_rm(app, context);
  add_tokenize(app, context);
  add_bench(app, context);
  add_eval(app, context);
  add_calibrate_kv(app, context);
  add_draft(app, context);
  add_quantize(app, context);
  add_kv(app, context);
  add_batch(app, context);
  add_schema(app, context);
  add_keys(app, context);
  add_health(app, context);
  add_ps(app, context);
  add_stop(app, context);
  add_doctor(app, context);
  add_config(app, context);
  add_completion(app, context);
  add_man(app, context);
  add_version(app, context);
}

// A flag takes one value, with commas where it is a list, or comes again: what follows is no further value.
void take_one_value_a_flag(CLI::App& app) {
  for (CLI::Option* const option : app.get_options()) {
    if (!option->get_positional()) option->allow_extra_args(false);
  }
  for (CLI::App* const verb : app.get_subcommands({})) take_one_value_a_flag(*verb);
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  std::fprintf(stderr, "kvasir: %s (see %s --help)\n", explain(app, error, argc, argv).c_str(),
               verb_path(app, argc, argv).c_str());
  return kExitUsage;
}

int greet() {
  print(
      "Kvasir serves language models from the machine you have.\n\n"
      "  kvasir run smollm2:135m \"Name a colour.\"   answers a prompt; without one it is a conversation\n"
      "  kvasir serve smollm2:135m                  serves the model at http://127.0.0.1:8080\n"
      "  kvasir list                                names the models that it can fetch\n"
      "  kvasir bench smollm2:135m                  measures speed beside the machine's limits\n\n"
      "kvasir --help lists all verbs, kvasir VERB --help the flags of one.\n");
  return finish_output();
}

// `kvasir help run` is `kvasir run --help`, and a flag with one dash and several letters is a long one.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  std::ranges::replace(words, std::string("-ngl"), std::string("--gpu-layers"));
  std::ranges::reverse(words);  // as CLI11 takes them
  return words;
}

// Prints the text of --help and --version.
int print_help(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream text;
  app.exit(error, text, text);
  print(text.str());
  return finish_output();
}

// "-hf" of llama.cpp begins as "-h" does.
bool has_foreign_help_flag(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) {
    return std::string_view(word).starts_with("-h") && !foreign_flag_hint(word).empty();
  });
}

int run_command(int argc, char** argv) {
  if (argc <= 1 || (argc == 2 && std::string_view(argv[1]) == "help")) return greet();
  CLI::App app{"Kvasir: serves language models from the machine you have", "kvasir"};
  app.set_version_flag("--version", build_info().version, "The version alone");
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.fallthrough();
  app.footer(
      "Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 model or input file, 4 the request is beyond "
      "a limit,\n"
      "5 the machine cannot, 130 interrupted.");
  Context context;
  add_global_options(app, context.options);
  add_verbs(app, context);
  lay_out_help(app);
  take_one_value_a_flag(app);
  auto settings = apply_settings(app);
  if (!settings) return report(settings.error());
  context.settings = std::move(*settings);
  if (argc > 2 && std::string_view(argv[1]) == "help" && find_verb(app, argv[2]) == nullptr) {
    ++argv;  // what is asked about is refused as a verb that is not there
    --argc;
  }
  try {
    app.parse(words_of(argc, argv));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0 && !has_foreign_help_flag(argc, argv)) return print_help(app, error);
    return usage_error(app, error, argc, argv);
  }
  return context.action ? context.action() : kExitUsage;
}

// A closed stream's number would go to the next file that is opened, which then got what the stream should.
// Writing to a stdout that was closed still fails, nobody misses what a closed stderr would have said.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) ::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace
}  // namespace kvasir::cli

int main(int argc, char** argv) {
  kvasir::cli::reserve_standard_streams();
  if (!kvasir::cli::prepare_for_little_memory()) {
    std::fputs("kvasir: ulimit -v leaves no memory to start\n", stderr);
    return kvasir::cli::kExitMachine;
  }
  kvasir::cli::install_sigbus_handler();
  std::signal(SIGXFSZ, SIG_IGN);  // a file at its limit is an error of the write, in words
  try {
    return kvasir::cli::run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("kvasir: out of memory (see --memory, ulimit -v)\n", stderr);
    return kvasir::cli::kExitMachine;
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "kvasir: the system refuses: %s (a thread takes memory, see ulimit -v and ulimit -u)\n",
                 error.code().message().c_str());
    return kvasir::cli::kExitMachine;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kvasir: internal error: %s\n", error.what());
    return kvasir::cli::kExitNo;
  }
}
