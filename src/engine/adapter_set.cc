#include "engine/adapter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "base/units.h"

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

Status AdapterSet::load(const AdapterConfig& config) {
  const std::lock_guard loading(loading_);
  const std::int64_t read_bytes = lora::max_read_bytes(config.path);
  KVASIR_CHECKED(check_room(config, 0, read_bytes));
  KVASIR_TRY(const lora::AdapterFile file, lora::read_adapter(config.path, model_, config.scale));
  const std::vector<backend::AdapterPart> parts = parts_of(file, model_);
  KVASIR_CHECKED(check_room(config, backend_.adapter_bytes(parts), read_bytes));
  auto weights = backend_.make_adapter(parts);
  if (!weights) {
    return make_error(weights.error().kind, fmt::format("{}: {}", printable_line(config.path), weights.error().message));
  }
  auto entry = std::make_shared<Entry>();
  entry->name = config.name;
  entry->version = file.version;
  entry->weights = *std::move(weights);
  const std::lock_guard lock(mutex_);
  alive_.push_back(entry);
  ++num_loads_;
  Entries entries = entries_;
  const auto same = std::ranges::find(entries, config.name, [](const auto& known) { return known->name; });
  if (same != entries.end()) {
    *same = std::move(entry);
  } else {
    entries.push_back(std::move(entry));
  }
  publish(std::move(entries));
  return {};
}

Status AdapterSet::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  Entries entries = entries_;
  if (std::erase_if(entries, [&](const auto& known) { return known->name == name; }) == 0) {
    return make_error(ErrorKind::kNotFound, fmt::format("no adapter is called \"{}\"", printable(name)));
  }
  publish(std::move(entries));
  return {};
}

// With mutex_ held.
void AdapterSet::publish(Entries entries) {
  auto names = std::make_shared<std::vector<std::string>>();
  for (const auto& entry : entries) names->push_back(entry->name);
  entries_ = std::move(entries);
  names_ = std::move(names);
}

Status AdapterSet::check_room(const AdapterConfig& config, std::int64_t packed_bytes, std::int64_t read_bytes) const {
  if (max_bytes_ == 0) return {};
  const std::int64_t wanted_bytes = packed_bytes + read_bytes;
  const std::string wants = fmt::format("{}: it takes {} while it is read", printable_line(config.path), format_bytes(wanted_bytes));
  if (wanted_bytes > max_bytes_) {
    return make_error(ErrorKind::kUsage, fmt::format("{}, --adapter-memory is {}", wants, format_bytes(max_bytes_)), "adapter-memory");
  }
  const std::int64_t used_bytes = num_bytes();
  if (wanted_bytes <= max_bytes_ - used_bytes) return {};
  return make_error(ErrorKind::kUnavailable, fmt::format("{}, and others have {} of the {} of --adapter-memory", wants,
                                                         format_bytes(used_bytes), format_bytes(max_bytes_)));
}

std::shared_ptr<const AdapterSet::Entry> AdapterSet::find(std::string_view name) const {
  if (name.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(entries_, name, [](const auto& entry) { return std::string_view(entry->name); });
  return found == entries_.end() ? nullptr : *found;
}

AdapterNames AdapterSet::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

std::int64_t AdapterSet::num_bytes() const {
  const std::lock_guard lock(mutex_);
  std::int64_t bytes = 0;
  std::erase_if(alive_, [&](const std::weak_ptr<const Entry>& known) {
    const std::shared_ptr<const Entry> entry = known.lock();
    if (entry != nullptr) bytes += entry->weights->num_bytes;
    return entry == nullptr;
  });
  return bytes;
}

void AdapterSet::describe(EngineStats& stats) const {
  stats.adapter_bytes = num_bytes();
  const std::lock_guard lock(mutex_);
  stats.num_adapters = std::ssize(entries_);
  stats.num_adapter_loads = num_loads_;
}

}  // namespace kvasir
