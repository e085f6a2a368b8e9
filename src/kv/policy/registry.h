// The policies by name.
#pragma once

#include <span>
#include <string_view>

#include "kv/policy/policy.h"

namespace kvasir::kv {

std::span<const KvPolicy* const> policies();
// Null when there is none of that name.
const KvPolicy* find_policy(std::string_view name);

const KvPolicy& uniform_policy();

}  // namespace kvasir::kv
