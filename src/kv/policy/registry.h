// The policies by name.
#pragma once

#include <span>
#include <string_view>

#include "kv/policy/policy.h"

namespace kvasir::kv {

// Null when there is none of that name.
const KvPolicy* find_policy(std::string_view name);
std::span<const std::string_view> policy_names();

const KvPolicy& uniform_policy();

}  // namespace kvasir::kv
