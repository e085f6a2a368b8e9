#include "cli/fetched_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/units.h"
#include "cli/transfer_view.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

Status fetch_from_hub(const store::ModelStore& store, const std::string& model,
                      const GlobalOptions& globals) {
  const auto here = store.resolve(model);
  if (here) return {};
  if (here.error().kind != ErrorKind::kNotFound) return std::unexpected(here.error());
  TransferView view(globals);
  view.note(fmt::format("{} is not here yet: pulling it", model));
  const auto pulled = store.pull_hub(model, {}, view.events());
  view.finish();
  if (!pulled) return std::unexpected(pulled.error());
  return {};
}

}  // namespace

Status fetch_if_missing(const std::string& model, const GlobalOptions& globals) {
  std::error_code ignored;
  if (std::filesystem::exists(model, ignored)) return {};
  const auto store = store::ModelStore::open_default();
  if (!store) return {};  // whoever opens the model says why
  if (store::HubName::matches(model)) return fetch_from_hub(*store, model, globals);
  const store::CatalogueEntry* const entry = store->catalogue().find(model);
  if (entry == nullptr || store->resolve(model)) return {};
  TransferView view(globals);
  view.note(fmt::format("{} is not here yet: pulling {}", entry->name, format_bytes(entry->size_bytes)));
  const auto pulled = store->pull(*entry, {}, view.events());
  view.finish();
  if (!pulled) return std::unexpected(pulled.error());
  return {};
}

Status check_model_name(const std::string& model) {
  const auto store = store::ModelStore::open_default();
  if (!store || store::HubName::matches(model) || store->catalogue().find(model) != nullptr) return {};
  const auto here = store->resolve(model);
  if (!here) return std::unexpected(here.error());
  return {};
}

}  // namespace kvasir::cli
