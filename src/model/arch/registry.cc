#include "model/arch/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "base/printable.h"

namespace kvasir::model {
namespace {

#define KVASIR_ARCHITECTURE(name) &name,
const Architecture* const kArchitectures[] = {
#include "model/arch/architectures.def"
};
#undef KVASIR_ARCHITECTURE

Result<const Architecture*> find_architecture(const io::WeightSource& source) {
  KVASIR_TRY(const std::string name, source.metadata().get_string("general.architecture"));
  std::vector<std::string_view> known;
  for (const Architecture* architecture : kArchitectures) {
    if (architecture->name == name) return architecture;
    known.push_back(architecture->name);
  }
  return make_error(ErrorKind::kBadFile,
                    fmt::format("metadata general.architecture: '{}' is not supported ({} are)",
                                printable(name), fmt::join(known, ", ")));
}

}  // namespace

Result<ModelConfig> load_config(const io::WeightSource& source) {
  KVASIR_TRY(const Architecture* architecture, find_architecture(source));
  KVASIR_TRY(ModelConfig config, read_config(source));
  KVASIR_CHECKED(architecture->configure(source, config));
  return config;
}

Result<std::unique_ptr<Model>> load_model(const io::WeightSource& source, backend::Backend& backend,
                                          const WorkspaceLimits& limits, WeightProgress progress) {
  KVASIR_TRY(const Architecture* architecture, find_architecture(source));
  KVASIR_TRY(ModelConfig config, load_config(source));
  WeightLoader loader(source, backend, std::move(progress));
  return architecture->load(std::move(config), loader, backend, limits);
}

Status check_tensors(const io::WeightSource& source, backend::Backend& backend) {
  KVASIR_TRY(const Architecture* architecture, find_architecture(source));
  KVASIR_TRY(ModelConfig config, load_config(source));
  WeightLoader loader = WeightLoader::dry(source, backend);
  KVASIR_CHECKED(
      architecture->load(std::move(config), loader, backend, {.max_rows = 1, .max_logit_rows = 1}));
  return {};
}

}  // namespace kvasir::model
