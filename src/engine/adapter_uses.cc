#include "engine/adapter_uses.h"

#include "base/check.h"

namespace kvasir {

void AdapterUses::begin(const AdapterSet::Entry* adapter, std::int32_t num_choices) {
  if (adapter == nullptr) return;
  AdapterUse& use = by_name_[adapter->name];
  use.name = adapter->name;
  use.num_choices += num_choices;
}

void AdapterUses::end(const AdapterSet::Entry* adapter) {
  if (adapter == nullptr) return;
  const auto found = by_name_.find(adapter->name);
  CHECK(found != by_name_.end() && found->second.num_choices > 0);
  if (--found->second.num_choices == 0) by_name_.erase(found);
}

void AdapterUses::begin_step() {
  for (auto& [name, use] : by_name_) use.num_running = 0;
}

void AdapterUses::run(const AdapterSet::Entry* adapter) {
  if (adapter != nullptr) ++by_name_[adapter->name].num_running;
}

void AdapterUses::describe(EngineStats& stats) const {
  stats.adapters.clear();
  for (const auto& [name, use] : by_name_) stats.adapters.push_back(use);
}

}  // namespace kvasir
