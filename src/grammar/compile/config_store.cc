#include "grammar/compile/config_store.h"

#include <algorithm>
#include <utility>

namespace kvasir::grammar {
namespace {

std::uint64_t hash_of_config(const Config& config) {
  std::uint64_t hash = std::uint64_t{config.boundary} << 1 | (config.at_text_start ? 1 : 0);
  const auto mix = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15;
    hash ^= hash >> 29;
  };
  for (const Place& place : config.places) {
    mix(std::uint64_t{place.row} << 32 | place.state);
    mix(place.terminal);
  }
  mix(config.places.size());
  if (config.recorded != kNoRow) mix(config.recorded);
  return hash;
}

}  // namespace

ConfigId ConfigStore::intern(const Config& config, bool& is_new) {
  const std::uint64_t hash = hash_of_config(config);
  const ConfigId found = found_.find(hash, [&](ConfigId id) {
    const Stored& stored = configs_[id];
    return stored.boundary == config.boundary && stored.recorded == config.recorded && stored.at_text_start == config.at_text_start &&
           std::ranges::equal(places(stored), config.places);
  });
  is_new = found == IdTable::kNone;
  if (!is_new) return found;
  configs_.push_back({.first_place = static_cast<std::uint32_t>(places_.size()),
                      .num_places = static_cast<std::uint32_t>(config.places.size()),
                      .boundary = config.boundary,
                      .recorded = config.recorded,
                      .at_text_start = config.at_text_start});
  places_.insert(places_.end(), config.places.begin(), config.places.end());
  const ConfigId id = records_.grow();
  found_.insert(hash, id);
  return id;
}

void ConfigStore::read(ConfigId id, Config& config) const {
  const Stored& stored = configs_[id];
  const std::span<const Place> own = places(stored);
  config.places.assign(own.begin(), own.end());
  config.boundary = stored.boundary;
  config.recorded = stored.recorded;
  config.at_text_start = stored.at_text_start;
}

void ConfigStore::keep_mask(ConfigId id, StoredMask mask) {
  masks_.push_back(std::make_unique<const StoredMask>(std::move(mask)));
  records_[id].mask.store(masks_.back().get(), std::memory_order_release);
}

}  // namespace kvasir::grammar
