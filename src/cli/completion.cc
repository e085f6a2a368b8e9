// kvasir completion: a script for the shell, made from the parser itself.
#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "cli/one_of.h"
#include "cli/shell_completion.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

int print_completion(const std::string& shell, const CLI::App& app, const GlobalOptions& globals) {
  const std::string script = shell == "bash"  ? bash_completion(app)
                             : shell == "zsh" ? zsh_completion(app)
                                              : fish_completion(app);
  if (!globals.json) {
    print(script);
    return finish_output();
  }
  std::string out;
  JsonWriter(out).begin_object().member("shell", shell).member("script", script).end_object();
  return print_document(std::move(out));
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  verb->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(one_of({"bash", "zsh", "fish"}));
  on_chosen(*verb, context,
            [shell, &app, &context] { return print_completion(*shell, app, context.options); });
}

}  // namespace kvasir::cli
