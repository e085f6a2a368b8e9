#include "kv/policy/registry.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"

namespace kvasir::kv {
namespace {

std::atomic<const KvPolicy*> added_policy = nullptr;

}  // namespace

AddedPolicy::AddedPolicy(const KvPolicy& policy) { CHECK(added_policy.exchange(&policy) == nullptr); }

AddedPolicy::~AddedPolicy() { added_policy = nullptr; }

std::span<const KvPolicy* const> policies() {
  static const auto all = [] {
    std::vector<const KvPolicy*> list = {&ladder_policy(), &pooled_ladder_policy(), &priced_ladder_policy(),
                                         &learned_ladder_policy(), &uniform_policy()};
    for (const auto& more : {fixed_format_policies(), drop_policies()}) {
      list.insert(list.end(), more.begin(), more.end());
    }
    return list;
  }();
  return all;
}

const KvPolicy* find_policy(std::string_view name) {
  const auto found = std::ranges::find(policies(), name, &KvPolicy::name);
  if (found != policies().end()) return *found;
  const KvPolicy* added = added_policy;
  return added != nullptr && added->name() == name ? added : nullptr;
}

}  // namespace kvasir::kv
