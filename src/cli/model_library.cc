#include "cli/model_library.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/ollama_name.h"
#include "base/printable.h"
#include "cli/model_set.h"
#include "store/model_hint.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

using server::api::ModelLibrary;

// As the store writes it. Clients of Ollama write its library's address before a name, and its tag behind it.
std::string stored_name(const store::ModelStore& store, const std::string& asked) {
  constexpr std::string_view kLatest = ":latest";
  std::string name(without_ollama_library(asked));
  if (std::string of_hub = store::name_of_foreign_model(name); !of_hub.empty()) return of_hub;
  if (name.ends_with(kLatest) && store.catalogue().find(name) == nullptr)
    name.resize(name.size() - kLatest.size());
  return name;
}

store::TransferEvents events_for(const ModelLibrary::OnProgress& on_progress, Logger& logger) {
  store::TransferEvents events;
  events.progress = [&on_progress](const store::Progress& progress) {
    return on_progress(
        {.step = progress.phase, .bytes_done = progress.bytes_done, .bytes_total = progress.bytes_total});
  };
  events.note = [&logger](const std::string& line) { logger.info("{}", line); };
  return events;
}

// The name under which the model is in the store now.
Result<std::string> pull_into(const store::ModelStore& store, const std::string& name,
                              const store::TransferEvents& events) {
  if (store::HubName::matches(name)) {
    KVASIR_CHECKED(store.pull_hub(name, {}, events));
    return name;
  }
  KVASIR_TRY(const store::CatalogueEntry* const entry, store.find(name));
  KVASIR_CHECKED(store.pull(*entry, {}, events));
  return entry->name;
}

// The name by which ModelStore::remove() knows the model; empty: it is not in the store.
std::string removable_name(const store::ModelStore& store, const std::string& model) {
  if (store::HubName::matches(model)) return model;
  const store::CatalogueEntry* const entry = store.catalogue().find(model);
  return entry == nullptr ? std::string() : entry->name;
}

}  // namespace

ModelLibrary make_model_library(ModelMemory memory, const ShadowOptions& shadows, Logger& logger) {
  const auto shared = std::make_shared<ModelMemory>(std::move(memory));
  const auto pull = [shared, shadows, &logger](
                        const std::string& asked,
                        const ModelLibrary::OnProgress& on_progress) -> Result<server::api::ServedModel> {
    KVASIR_TRY(const store::ModelStore store, store::ModelStore::open_default());
    const std::string name = stored_name(store, asked);
    KVASIR_TRY(const std::string model, pull_into(store, name, events_for(on_progress, logger)));
    ModelPlace place{.model = model, .name = default_name(model)};
    KVASIR_CHECKED(shared->fit(place));
    logger.info("{}: pulled", printable_line(model));
    server::api::ServedModel served = served_on_demand(place, shadows, logger);
    served.was_pulled = true;
    return served;
  };
  const auto may_remove = [](const std::string& model) {
    const auto store = store::ModelStore::open_default();
    return store && !removable_name(*store, model).empty();
  };
  const auto remove = [&logger](const std::string& model) -> Status {
    KVASIR_TRY(const store::ModelStore store, store::ModelStore::open_default());
    KVASIR_CHECKED(store.remove(removable_name(store, model)));
    logger.info("{}: deleted", printable_line(model));
    return {};
  };
  return {.pull = pull, .remove = remove, .may_remove = may_remove};
}

}  // namespace kvasir::cli
