#include "engine/adapter_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/printable.h"
#include "base/units.h"

namespace kvasir {
namespace {

// The parts of each matrix that was made of the tensor: several have their rows of b each.
std::vector<backend::AdapterPart> parts_of(const lora::AdapterFile& file, const model::Model& model) {
  std::vector<backend::AdapterPart> parts;
  // In the order in which a step reads them.
  for (const model::NamedMatrix& named : model.layer_matrices()) {
    for (const lora::AdapterTensor& tensor : file.tensors) {
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

std::unexpected<Error> none_is_called(std::string_view name) {
  return make_error(ErrorKind::kUsage, fmt::format("adapter: none is called \"{}\"", printable(name)), "adapter");
}

std::int64_t steady_now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

std::uint64_t another_version(std::uint64_t version, std::uint32_t word) {
  const std::uint64_t hash = (version ^ word) * 0x100000001b3u;  // FNV-1a goes on
  return hash == 0 ? 1 : hash;
}

}  // namespace

std::uint64_t AdapterSet::Entry::version_at(float used_scale) const {
  return used_scale == 1.0f ? version : another_version(version, std::bit_cast<std::uint32_t>(used_scale));
}

Status AdapterSet::load(const AdapterConfig& config, bool may_leave) {
  if (!std::isfinite(config.scale)) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: its scale is no number", printable_line(config.path)), "lora-scale");
  }
  const std::lock_guard loading(loading_);
  KVASIR_TRY(std::shared_ptr<const Entry> entry, read(config, 0));
  const std::lock_guard lock(mutex_);
  ++num_loads_;
  Listed made = {.config = config, .may_leave = may_leave, .entry = std::move(entry)};
  made.num_bytes = made.entry->weights->num_bytes;
  if (const auto same = place_of(config.name); same != listed_.end()) {
    *same = std::move(made);
  } else {
    listed_.push_back(std::move(made));
  }
  publish_names();
  return {};
}

// With loading_ held.
Result<std::shared_ptr<const AdapterSet::Entry>> AdapterSet::read(const AdapterConfig& config, std::int64_t expected_bytes) {
  const std::int64_t read_bytes = lora::max_read_bytes(config.path);
  KVASIR_CHECKED(make_room(config, expected_bytes, read_bytes));
  KVASIR_TRY(const lora::AdapterFile file, lora::read_adapter(config.path, model_));
  const std::vector<backend::AdapterPart> parts = parts_of(file, model_);
  KVASIR_CHECKED(make_room(config, backend_.adapter_bytes(parts), read_bytes));
  auto weights = backend_.make_adapter(parts);
  if (!weights) {
    return make_error(weights.error().kind, fmt::format("{}: {}", printable_line(config.path), weights.error().message));
  }
  auto entry = std::make_shared<Entry>();
  entry->name = config.name;
  // Rounded otherwise it answers otherwise.
  entry->version = type_ == AdapterType::kF16 ? file.version : another_version(file.version, static_cast<std::uint32_t>(type_));
  entry->scale = config.scale;
  entry->weights = *std::move(weights);
  entry->last_use = steady_now();
  const std::lock_guard lock(mutex_);
  alive_.push_back(entry);
  return entry;
}

Status AdapterSet::unload(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto place = place_of(name);
  if (place == listed_.end()) {
    return make_error(ErrorKind::kNotFound, fmt::format("no adapter is called \"{}\"", printable(name)));
  }
  listed_.erase(place);
  publish_names();
  return {};
}

// With mutex_ held.
void AdapterSet::publish_names() {
  auto names = std::make_shared<std::vector<std::string>>();
  for (const Listed& listed : listed_) names->push_back(listed.config.name);
  names_ = std::move(names);
}

// With mutex_ held.
std::vector<AdapterSet::Listed>::iterator AdapterSet::place_of(std::string_view name) {
  return std::ranges::find_if(listed_, [name](const Listed& listed) { return listed.config.name == name; });
}

// Nobody leaves where the room would still not do.
Status AdapterSet::make_room(const AdapterConfig& config, std::int64_t packed_bytes, std::int64_t read_bytes) {
  if (max_bytes_ == 0) return {};
  const std::int64_t wanted_bytes = packed_bytes + read_bytes;
  const std::string wants = fmt::format("{}: it takes {} while it is read", printable_line(config.path), format_bytes(wanted_bytes));
  if (wanted_bytes > max_bytes_) {
    return make_error(ErrorKind::kUsage, fmt::format("{}, --adapter-memory is {}", wants, format_bytes(max_bytes_)), "adapter-memory");
  }
  std::vector<std::shared_ptr<const Entry>> leaving;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const std::int64_t used_bytes = alive_bytes();
  std::vector<Listed*> idle;
  std::int64_t idle_bytes = 0, staying_bytes = 0;
  for (Listed& listed : listed_) {
    if (!listed.may_leave && listed.config.name != config.name) staying_bytes += listed.entry->weights->num_bytes;
    if (!listed.is_idle()) continue;
    idle.push_back(&listed);
    idle_bytes += listed.entry->weights->num_bytes;
  }
  if (wanted_bytes > max_bytes_ - staying_bytes) {
    return make_error(ErrorKind::kUsage, fmt::format("{}, --adapter-memory is {}, and adapters that stay have {} of it", wants,
                                                     format_bytes(max_bytes_), format_bytes(staying_bytes)), "adapter-memory");
  }
  if (wanted_bytes > max_bytes_ - used_bytes + idle_bytes) {
    return make_error(ErrorKind::kUnavailable, fmt::format("{}, and others have {} of the {} of --adapter-memory", wants,
                                                           format_bytes(used_bytes), format_bytes(max_bytes_)));
  }
  std::ranges::sort(idle, {}, [](const Listed* listed) { return listed->entry->last_use.load(); });
  std::int64_t free_bytes = max_bytes_ - used_bytes;
  for (auto next = idle.begin(); wanted_bytes > free_bytes; ++next) {
    free_bytes += (*next)->entry->weights->num_bytes;
    leaving.push_back(std::move((*next)->entry));
    ++num_evictions_;
  }
  return {};
}

AdapterSet::Held AdapterSet::find(std::string_view name) const {
  if (name.empty()) return nullptr;
  const std::lock_guard lock(mutex_);
  return hold(name);
}

// With mutex_ held.
AdapterSet::Held AdapterSet::hold(std::string_view name) const {
  const auto found = std::ranges::find_if(listed_, [name](const Listed& listed) { return listed.config.name == name; });
  if (found == listed_.end() || found->entry == nullptr) return nullptr;
  const Entry* const entry = found->entry.get();
  return {entry, [kept = found->entry](const Entry* used) { used->last_use = steady_now(); }};
}

Result<AdapterSet::Held> AdapterSet::acquire(std::string_view name) {
  if (Held held = find(name)) return held;
  const std::lock_guard loading(loading_);
  AdapterConfig config;
  std::int64_t num_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (Held held = hold(name)) return held;  // it came back meanwhile
    const auto place = place_of(name);
    if (place == listed_.end()) return none_is_called(name);
    config = place->config;
    num_bytes = place->num_bytes;
  }
  KVASIR_TRY(std::shared_ptr<const Entry> entry, read(config, num_bytes));
  const std::lock_guard lock(mutex_);
  const auto place = place_of(name);
  if (place == listed_.end()) return none_is_called(name);  // it was unloaded meanwhile
  place->num_bytes = entry->weights->num_bytes;
  place->entry = std::move(entry);
  ++num_reloads_;
  return hold(name);
}

AdapterNames AdapterSet::names() const {
  const std::lock_guard lock(mutex_);
  return names_;
}

std::int64_t AdapterSet::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return alive_bytes();
}

// With mutex_ held.
std::int64_t AdapterSet::alive_bytes() const {
  std::int64_t bytes = 0;
  std::erase_if(alive_, [&](const std::weak_ptr<const Entry>& known) {
    const std::shared_ptr<const Entry> entry = known.lock();
    if (entry != nullptr) bytes += entry->weights->num_bytes;
    return entry == nullptr;
  });
  return bytes;
}

void AdapterSet::describe(EngineStats& stats) const {
  const std::lock_guard lock(mutex_);
  stats.adapter_bytes = alive_bytes();
  stats.num_adapters = std::ssize(listed_);
  stats.num_adapter_loads = num_loads_;
  stats.num_adapter_evictions = num_evictions_;
  stats.num_adapter_reloads = num_reloads_;
}

}  // namespace kvasir
