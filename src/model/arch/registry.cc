#include "model/arch/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
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

// A family that is not supported: what is nearest to it, and what it needs beyond that.
struct Unsupported {
  std::string_view name, relative, lacks;
};

#define KVASIR_UNSUPPORTED(name, relative, lacks) {name, relative, lacks},
constexpr Unsupported kUnsupported[] = {
#include "model/arch/unsupported.def"
};
#undef KVASIR_UNSUPPORTED

std::string unsupported_line(std::string_view name) {
  const std::string line = fmt::format("metadata general.architecture: '{}' is not supported",
                                       printable(std::string(name)));
  if (const std::string why = why_unsupported(name); !why.empty()) return line + why;
  std::vector<std::string_view> names;
  for (const Architecture* architecture : kArchitectures) names.push_back(architecture->name);
  return fmt::format("{} ({} are)", line, fmt::join(names, ", "));
}

Result<const Architecture*> architecture_of(const io::WeightSource& source) {
  KVASIR_TRY(const std::string name, source.metadata().get_string("general.architecture"));
  if (const Architecture* architecture = find_architecture(name)) return architecture;
  return make_error(ErrorKind::kBadFile, unsupported_line(name));
}

// For an architecture that has no mixture of experts.
Status refuse_experts(const io::WeightSource& source, const ModelConfig& config) {
  if (config.moe.has_experts()) return {};
  const std::string key = config.architecture + ".expert_count";
  KVASIR_TRY(const auto count, source.metadata().find_int(key, 0, backend::kMaxExperts));
  if (count.value_or(0) == 0) return {};
  return make_error(ErrorKind::kBadFile,
                    fmt::format("metadata {}: must be 0 or absent, as a mixture of experts is not supported "
                                "for this architecture, is {}",
                                key, *count));
}

}  // namespace

std::string why_unsupported(std::string_view name) {
  const auto* const known = std::ranges::find(kUnsupported, name, &Unsupported::name);
  if (known == std::end(kUnsupported)) return {};
  if (known->relative.empty()) return fmt::format(": it is {}", known->lacks);
  return fmt::format(": its nearest relative here is {}, and it needs {} as well", known->relative, known->lacks);
}

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::ranges::find(kArchitectures, name,
                                              [](const Architecture* each) { return each->name; });
  return found == std::end(kArchitectures) ? nullptr : *found;
}

std::string_view nearest_architecture(std::string_view name) {
  const auto* const known = std::ranges::find(kUnsupported, name, &Unsupported::name);
  return known == std::end(kUnsupported) ? std::string_view() : known->relative;
}

Result<ModelConfig> load_config(const io::WeightSource& source) {
  KVASIR_TRY(const Architecture* architecture, architecture_of(source));
  KVASIR_TRY(ModelConfig config, read_config(source));
  KVASIR_CHECKED(architecture->configure(source, config));
  KVASIR_CHECKED(refuse_experts(source, config));
  KVASIR_CHECKED(check_kv_heads(config));
  return config;
}

Result<std::unique_ptr<Model>> load_model(const io::WeightSource& source, backend::Backend& backend,
                                          const WorkspaceLimits& limits, WeightProgress progress,
                                          io::PackedCopy* copy) {
  KVASIR_TRY(const Architecture* architecture, architecture_of(source));
  KVASIR_TRY(ModelConfig config, load_config(source));
  WeightLoader loader(source, backend, std::move(progress), copy);
  KVASIR_TRY(auto model, architecture->load(std::move(config), loader, backend, limits));
  model->set_layer_matrices(loader.take_layer_matrices());
  return model;
}

std::vector<Error> tensor_faults(const io::WeightSource& source, backend::Backend& backend) {
  WeightLoader loader = WeightLoader::inspecting(source, backend);
  const auto load = [&]() -> Status {
    KVASIR_TRY(const Architecture* architecture, architecture_of(source));
    KVASIR_TRY(ModelConfig config, load_config(source));
    KVASIR_CHECKED(architecture->load(std::move(config), loader, backend, {.max_rows = 1, .max_logit_rows = 1}));
    return {};
  };
  const Status end = load();
  std::vector<Error> faults = loader.faults();
  if (!end) faults.push_back(end.error());
  return faults;
}

Result<WeightFootprint> measure_weights(const io::WeightSource& source, backend::Backend& backend) {
  KVASIR_TRY(const Architecture* architecture, architecture_of(source));
  KVASIR_TRY(ModelConfig config, load_config(source));
  WeightLoader loader = WeightLoader::dry(source, backend);
  KVASIR_CHECKED(
      architecture->load(std::move(config), loader, backend, {.max_rows = 1, .max_logit_rows = 1}));
  return loader.footprint();
}

}  // namespace kvasir::model
