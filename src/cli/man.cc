// kvasir man: manual pages of the program and its verbs, made from the parser itself.
#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/man_page.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "store/file_error.h"

namespace kvasir::cli {
namespace {

struct ManOptions {
  std::string verb;    // empty: the program's page
  std::string folder;  // every page into it instead
};

Status write_page(const std::filesystem::path& path, const std::string& page) {
  std::ofstream file(path);
  file << page;
  file.close();
  if (file) return {};
  return store::file_error(path.native(), "write", errno);
}

Result<int> write_pages(const std::string& folder, const CLI::App& app) {
  const std::filesystem::path path(folder);
  KVASIR_CHECKED(write_page(path / "kvasir.1", program_man_page(app)));
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    KVASIR_CHECKED(write_page(path / ("kvasir-" + verb->get_name() + ".1"), verb_man_page(app, *verb)));
  }
  return kExitDone;
}

Result<int> print_page(const std::string& verb_name, const CLI::App& app, const GlobalOptions& globals) {
  const CLI::App* verb = verb_name.empty() ? nullptr : find_verb(app, verb_name);
  if (!verb_name.empty() && verb == nullptr) {
    return make_error(ErrorKind::kUsage, fmt::format("there is no verb '{}'", printable(verb_name)), "verb");
  }
  const std::string page = verb == nullptr ? program_man_page(app) : verb_man_page(app, *verb);
  if (!globals.json) {
    print(page);
    return finish_output();
  }
  std::string out;
  JsonWriter(out).begin_object().member("verb", verb_name).member("page", page).end_object();
  return print_document(std::move(out));
}

}  // namespace

void add_man(CLI::App& app, Context& context) {
  auto options = std::make_shared<ManOptions>();
  CLI::App* verb = app.add_subcommand("man", "The manual page of the program or of a verb, for man -l -");
  verb->add_option("VERB", options->verb, "Verb of the page (default: the program)");
  verb->add_option("--folder", options->folder, "Write every page into this folder instead");
  on_chosen(*verb, context, [options, &app, &context] {
    return options->folder.empty() ? print_page(options->verb, app, context.options)
                                   : write_pages(options->folder, app);
  });
}

}  // namespace kvasir::cli
