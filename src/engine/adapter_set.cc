#include "engine/adapter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "lora/adapter_file.h"

namespace kvasir {
namespace {

// The parts of each matrix that was made of the tensor: several have their rows of b each.
std::vector<backend::AdapterPart> parts_of(const lora::AdapterFile& file, const model::Model& model) {
  std::vector<backend::AdapterPart> parts;
  for (const lora::AdapterTensor& tensor : file.tensors) {
    for (const model::NamedMatrix& named : model.layer_matrices()) {
      if (named.name != tensor.name) continue;
      const auto first = static_cast<std::size_t>(named.first_row * tensor.rank);
      const auto count = static_cast<std::size_t>(named.matrix->num_rows * tensor.rank);
      parts.push_back({.weight = named.matrix,
                       .rank = tensor.rank,
                       .factor = tensor.factor,
                       .a = tensor.a,
                       .b = std::span(tensor.b).subspan(first, count)});
    }
  }
  return parts;
}

}  // namespace

Result<AdapterSet> AdapterSet::load(std::span<const AdapterConfig> configs, const model::Model& model,
                                    backend::Backend& backend) {
  AdapterSet set;
  for (const AdapterConfig& config : configs) {
    if (set.find(config.name) != nullptr) {
      return make_error(ErrorKind::kUsage, fmt::format("lora: two adapters are called \"{}\"", printable(config.name)), "lora");
    }
    KVASIR_TRY(const lora::AdapterFile file, lora::read_adapter(config.path, model, config.scale));
    Entry entry{.name = config.name, .version = file.version, .weights = nullptr};
    KVASIR_TRY(entry.weights, backend.make_adapter(parts_of(file, model)));
    set.entries_.push_back(std::move(entry));
  }
  return set;
}

const AdapterSet::Entry* AdapterSet::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<std::string> AdapterSet::names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

std::int64_t AdapterSet::num_bytes() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.weights->num_bytes;
  return bytes;
}

}  // namespace kvasir
