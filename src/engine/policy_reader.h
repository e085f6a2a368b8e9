// A text that is read with a policy looking on after every block, without an engine around it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/loaded_model.h"
#include "kv/policy/policy.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir {

// Steps are of `step_tokens`, by default a block's, so that the policy sees each query's attention once. `keep_going` is asked before each.
// Errors: kCancelled; kUsage (the text is longer than the model was loaded for). Requires: a model that was loaded for one
// sequence, and that nobody else runs.
Status read_with_policy(LoadedModel& loaded, std::span<const TokenId> text, const kv::KvPolicy& policy,
                        const std::function<bool()>& keep_going, std::int32_t step_tokens = kv::kTokensPerBlock);

}  // namespace kvasir
