#include "kv/policy/registry.h"

#include <array>

namespace kvasir::kv {
namespace {

constexpr std::array<std::string_view, 1> kNames = {"uniform"};

}  // namespace

const KvPolicy* find_policy(std::string_view name) {
  if (name == uniform_policy().name()) return &uniform_policy();
  return nullptr;
}

std::span<const std::string_view> policy_names() { return kNames; }

}  // namespace kvasir::kv
