#include "store/model_source.h"

#include "store/path_source.h"
#include "store/pypi_source.h"

namespace kvasir::store {

std::unique_ptr<ModelSource> make_source(const CatalogueEntry& entry, const Origin& origin) {
  if (const auto* pypi = std::get_if<PypiOrigin>(&origin)) return std::make_unique<PypiSource>(entry, *pypi);
  return std::make_unique<PathSource>(entry, std::get<PathOrigin>(origin));
}

}  // namespace kvasir::store
