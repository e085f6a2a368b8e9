#include "kv/policy/registry.h"

#include <algorithm>
#include <vector>

namespace kvasir::kv {

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
  return found == policies().end() ? nullptr : *found;
}

}  // namespace kvasir::kv
