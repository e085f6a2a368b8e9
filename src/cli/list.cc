// kvasir list: the models of the catalogue and of the store.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/standard_output.h"
#include "cli/transfer_view.h"
#include "cli/verb.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct Row {
  store::StoredModel model;
  std::optional<bool> sha256_ok = {};  // nothing: not checked, or not in the catalogue
  std::optional<bool> packed_ok = {};  // nothing: not checked, or there is no copy
};

bool has_wrong_size(const store::StoredModel& model) {
  return model.present && model.entry != nullptr && model.size_bytes != model.entry->size_bytes;
}

const char* state_of(const Row& row) {
  if (!row.model.present) return "not pulled";
  if (row.model.origin == store::ModelOrigin::kOwnFile) return "own file";
  if (row.model.origin == store::ModelOrigin::kHubCache) return "hub cache";
  if (has_wrong_size(row.model) || row.sha256_ok == false) return "damaged";
  return row.sha256_ok ? "verified" : "pulled";
}

// Whether all are; a line on stderr for each that is not.
bool has_sound_copies(const store::ModelStore& store, const store::StoredModel& model) {
  const std::vector<std::string> damaged = store.damaged_copies(model);
  for (const std::string& line : damaged) {
    say(fmt::format("kvasir: {}; delete the file, and the next start makes it anew", line));
  }
  return damaged.empty();
}

Result<std::vector<Row>> rows_of(const store::ModelStore& store, bool verify, const GlobalOptions& options) {
  TransferView view(options);
  std::vector<Row> rows;
  for (const store::StoredModel& model : store.list()) {
    rows.push_back({.model = model});
    if (!verify || !model.present) continue;
    if (model.packed_bytes > 0) rows.back().packed_ok = has_sound_copies(store, model);
    if (model.entry == nullptr) continue;
    KVASIR_TRY(rows.back().sha256_ok, store.verify(*model.entry, view.events()));
  }
  return rows;
}

void write_row(JsonWriter& json, const Row& row) {
  const store::StoredModel& model = row.model;
  json.begin_object()
      .member("name", model.name)
      .member("state", state_of(row))
      .member("pulled", model.present)
      .member("source", store::name_of(model.origin))
      .member("path", model.path.native())
      .member("size_bytes", model.size_bytes);
  if (model.packed_bytes > 0) json.member("packed_bytes", model.packed_bytes);
  if (row.packed_ok) json.member("packed_ok", *row.packed_ok);
  if (row.sha256_ok) {
    json.member("sha256_ok", *row.sha256_ok);
  } else {
    json.member_null("sha256_ok");
  }
  if (model.entry != nullptr) {
    json.member("description", model.entry->description)
        .member("license", model.entry->license)
        .member("sha256", model.entry->sha256)
        .member("chat_template", model.entry->has_chat_template);
  }
  json.end_object();
}

// kExitNo: something that was read is not what it was.
int exit_code_of(const std::vector<Row>& rows) {
  const auto is_damaged = [](const Row& row) { return row.sha256_ok == false || row.packed_ok == false; };
  return std::ranges::any_of(rows, is_damaged) ? kExitNo : kExitDone;
}

int print_models_json(const std::vector<Row>& rows) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array();
  for (const Row& row : rows) write_row(json, row);
  json.end_array();
  return print_document(std::move(out), exit_code_of(rows));
}

// The bytes that packed copies of its weights take besides.
std::string packed_note(const Row& row) {
  if (row.model.packed_bytes == 0) return {};
  return fmt::format(" + {}{}", format_bytes(row.model.packed_bytes), row.packed_ok == false ? " damaged" : "");
}

int print_models(const std::vector<Row>& rows) {
  constexpr std::string_view kLine = "{:<{}} {:>{}}  {:<10}  {}\n";
  std::size_t size_width = 9;
  std::size_t width = 20;
  for (const Row& row : rows) width = std::max(width, printable(row.model.name, 120).size());
  const auto size_of = [](const Row& row) { return format_bytes(row.model.size_bytes) + packed_note(row); };
  for (const Row& row : rows) size_width = std::max(size_width, size_of(row).size());
  print(fmt::format(kLine, "NAME", width, "SIZE", size_width, "STATE", "DESCRIPTION"));
  for (const Row& row : rows) {
    print(fmt::format(
        kLine, printable(row.model.name, 120), width, size_of(row), size_width, state_of(row),
        row.model.entry != nullptr ? row.model.entry->description : printable(row.model.path.native(), 300)));
  }
  return finish_output(exit_code_of(rows));
}

int list(bool verify, const GlobalOptions& options) {
  const auto store = store::ModelStore::open_default();
  if (!store) return report(store.error());
  const auto rows = rows_of(*store, verify, options);
  if (!rows) return report(rows.error());
  return options.json ? print_models_json(*rows) : print_models(*rows);
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  const auto verify = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("list", "Show the models that can be pulled and those that are here");
  verb->add_flag("--verify", *verify, "Check the SHA-256 of those that are here, and packed copies");
  verb->callback(
      [verify, &context] { context.action = [verify, &context] { return list(*verify, context.options); }; });
}

}  // namespace kvasir::cli
