#include "cli/described_model.h"

#include <utility>

#include "cli/transfer_view.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

// The files lie in a folder that nobody knows: messages name the model instead.
std::string with_name(std::string line, const std::string& folder, const std::string& name) {
  for (std::size_t at = line.find(folder); at != line.npos; at = line.find(folder, at)) {
    line.replace(at, folder.size(), name);
    at += name.size();
  }
  return line;
}

Result<DescribedModel> open_on_hub(const std::string& model, const GlobalOptions& globals) {
  KVASIR_TRY(const store::HubName name, store::HubName::parse(model));
  KVASIR_TRY(const store::HubSettings settings, store::HubSettings::from_environment());
  DescribedModel described;
  TransferView view(globals);
  auto headers = store::HubHeaders::fetch(settings, name, view.events());
  view.finish();
  if (!headers) return std::unexpected(headers.error());
  auto opened = open_model_to_describe(headers->path().native());
  if (!opened) {
    Error error = opened.error();
    error.message = with_name(std::move(error.message), headers->folder().native(), name.text());
    return std::unexpected(std::move(error));
  }
  described.license = headers->license();
  described.headers.emplace(std::move(*headers));
  described.opened = std::move(*opened);
  described.path = name.text();
  return described;
}

}  // namespace

std::string DescribedModel::in_words(std::string line) const {
  return headers ? with_name(std::move(line), headers->folder().native(), path) : line;
}

Result<DescribedModel> open_described(const std::string& model, const GlobalOptions& globals) {
  const auto path = store::resolve_model(model);
  if (!path) {
    const bool may_be_on_hub = store::HubName::matches(model) && path.error().kind == ErrorKind::kNotFound;
    if (may_be_on_hub) return open_on_hub(model, globals);
    return std::unexpected(path.error());
  }
  DescribedModel described;
  KVASIR_TRY(described.opened, open_model_to_describe(*path));
  described.path = described.opened.source().description();
  return described;
}

}  // namespace kvasir::cli
