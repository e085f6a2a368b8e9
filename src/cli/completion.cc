// kvasir completion: a script for the shell, made from the parser itself.
#include <memory>

#include "cli/shell_completion.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {

void add_completion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "A completion script for bash, zsh or fish");
  verb->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  on_chosen(*verb, context, [shell, &app]() -> Result<int> {
    print(*shell == "bash"  ? bash_completion(app)
          : *shell == "zsh" ? zsh_completion(app)
                            : fish_completion(app));
    return finish_output();
  });
}

}  // namespace kvasir::cli
