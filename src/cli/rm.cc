// kvasir rm: deletes a pulled model.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

int remove_model(const std::string& name, const GlobalOptions& options) {
  const auto store = store::ModelStore::open_default();
  if (!store) return report(store.error());
  const auto removed = store->remove(name);
  if (!removed) return report(removed.error());
  if (options.json) {
    std::string out;
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_array().begin_object();
    json.member("name", removed->name)
        .member("path", removed->path.native())
        .member("freed_bytes", removed->size_bytes + removed->packed_bytes);
    json.end_object().end_array();
    return print_document(std::move(out));
  }
  if (!options.quiet) {
    say(fmt::format("removed {} ({} free again)", printable(name), format_bytes(removed->size_bytes + removed->packed_bytes)));
  }
  return kExitDone;
}

}  // namespace

void add_rm(CLI::App& app, Context& context) {
  const auto name = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("rm", "Delete a model from the store");
  verb->add_option("NAME", *name, "A name from `kvasir list`")->required();
  verb->callback([name, &context] {
    context.action = [name, &context] { return remove_model(*name, context.options); };
  });
}

}  // namespace kvasir::cli
