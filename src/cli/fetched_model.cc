#include "cli/fetched_model.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/units.h"
#include "cli/transfer_view.h"
#include "store/model_store.h"

namespace kvasir::cli {

Status fetch_if_missing(const std::string& model, const GlobalOptions& globals) {
  std::error_code ignored;
  if (std::filesystem::exists(model, ignored)) return {};
  const auto store = store::ModelStore::open_default();
  if (!store) return {};  // whoever opens the model says why
  const store::CatalogueEntry* const entry = store->catalogue().find(model);
  if (entry == nullptr || store->resolve(model)) return {};
  TransferView view(globals);
  view.note(fmt::format("{} is not here yet: pulling {}", entry->name, format_bytes(entry->size_bytes)));
  const auto pulled = store->pull(*entry, {}, view.events());
  view.finish();
  if (!pulled) return std::unexpected(pulled.error());
  return {};
}

}  // namespace kvasir::cli
