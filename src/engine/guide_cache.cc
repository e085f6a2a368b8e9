#include "engine/guide_cache.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace kvasir {

CompiledGuide GuideCache::find(std::string_view key, std::string_view tenant) {
  const auto found = std::ranges::find(kept_, key, &Entry::key);
  if (found == kept_.end()) return nullptr;
  if (found->guide->is_exhausted()) renew(CompiledGuide(found->guide));
  kept_.splice(kept_.begin(), kept_, found);
  kept_.front().tenant = tenant;
  return kept_.front().guide;
}

std::int64_t GuideCache::add(std::string key, std::string_view tenant, CompiledGuide guide) {
  const auto found = std::ranges::find(kept_, key, &Entry::key);  // of another thread meanwhile
  if (found != kept_.end()) kept_.erase(found);
  kept_.push_front({std::move(key), std::string(tenant), std::move(guide)});
  return shrink();
}

CompiledGuide GuideCache::renew(const CompiledGuide& guide) {
  CompiledGuide renewed = guide->renewed();
  const auto kept = std::ranges::find(kept_, guide, &Entry::guide);
  if (kept != kept_.end()) {
    kept->guide = renewed;
    lost_.push_back(guide);
  } else if (std::ranges::find(kept_, renewed, &Entry::guide) == kept_.end()) {
    const auto is_same = [&](const std::weak_ptr<const grammar::CompiledGrammar>& lost) { return lost.lock() == renewed; };
    if (std::ranges::none_of(lost_, is_same)) lost_.push_back(renewed);
  }
  return renewed;
}

bool GuideCache::has_room() { return lost_bytes() < max_bytes_; }

std::int64_t GuideCache::bytes() { return kept_bytes() + lost_bytes(); }

std::int64_t GuideCache::bytes_of(const Entry& entry) {
  return static_cast<std::int64_t>(entry.key.size() + entry.guide->size_bytes());
}

std::int64_t GuideCache::kept_bytes() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : kept_) bytes += bytes_of(entry);
  return bytes;
}

std::int64_t GuideCache::lost_bytes() {
  std::int64_t bytes = 0;
  std::erase_if(lost_, [&](const std::weak_ptr<const grammar::CompiledGrammar>& lost) {
    const CompiledGuide guide = lost.lock();
    if (guide != nullptr) bytes += static_cast<std::int64_t>(guide->size_bytes());
    return guide == nullptr;
  });
  return bytes;
}

std::int64_t GuideCache::shrink() {
  std::map<std::string_view, std::int64_t> by_tenant;
  std::int64_t total = 0;
  std::int64_t total_lost = 0;
  for (const Entry& entry : kept_) {
    by_tenant[entry.tenant] += bytes_of(entry);
    total += bytes_of(entry);
  }
  while (kept_.size() > 1 && total > max_bytes_) {
    const auto most = std::ranges::max_element(by_tenant, {}, [](const auto& of) { return of.second; });
    const auto last = std::ranges::find(kept_.rbegin(), kept_.rend(), most->first, &Entry::tenant);
    const std::int64_t bytes = bytes_of(*last);
    total -= bytes;
    total_lost += bytes;
    most->second -= bytes;
    lost_.push_back(last->guide);
    // The name of a tenant in the map may lie in the entry that goes.
    const std::string tenant = last->tenant;
    const std::int64_t rest = most->second;
    by_tenant.erase(most);
    kept_.erase(std::next(last).base());
    const auto other = std::ranges::find(kept_, tenant, &Entry::tenant);
    if (other != kept_.end()) by_tenant[other->tenant] = rest;
  }
  return total_lost;
}

}  // namespace kvasir
