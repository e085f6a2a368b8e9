#include "kv/policy/registry.h"

#include <algorithm>
#include <array>

namespace kvasir::kv {

std::span<const KvPolicy* const> policies() {
  static const std::array<const KvPolicy*, 1> all = {&uniform_policy()};
  return all;
}

const KvPolicy* find_policy(std::string_view name) {
  const auto found = std::ranges::find(policies(), name, &KvPolicy::name);
  return found == policies().end() ? nullptr : *found;
}

}  // namespace kvasir::kv
