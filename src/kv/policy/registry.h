// The policies by name.
#pragma once

#include <span>
#include <string_view>

#include "kv/policy/policy.h"

namespace kvasir::kv {

std::span<const KvPolicy* const> policies();
// One of policies(), or an AddedPolicy. Null when there is none of that name.
const KvPolicy* find_policy(std::string_view name);

// A policy that requests find besides, as long as this lives: for evaluation. One at a time. Thread safety: no requests run
// when it begins or ends.
class AddedPolicy {
 public:
  // Borrows it.
  explicit AddedPolicy(const KvPolicy& policy);
  ~AddedPolicy();
  AddedPolicy(const AddedPolicy&) = delete;
  AddedPolicy& operator=(const AddedPolicy&) = delete;
};

const KvPolicy& uniform_policy();
const KvPolicy& ladder_policy();
const KvPolicy& pooled_ladder_policy();
const KvPolicy& priced_ladder_policy();
const KvPolicy& learned_ladder_policy();
std::span<const KvPolicy* const> fixed_format_policies();
std::span<const KvPolicy* const> drop_policies();

}  // namespace kvasir::kv
