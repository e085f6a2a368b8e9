// How a request's KV is treated: as people write it, checked, and as the cache takes it.
#pragma once

#include <string_view>

#include "kv/policy/policy.h"
#include "kvasir/request.h"
#include "kvasir/result.h"

namespace kvasir {

// "0.3" and "30%" are shares of the bytes in f16; "64MiB" and "65536" are bytes, at least 4 KiB. Error
// (kUsage): neither, or out of range; it says what must be, not of which field.
Status set_kv_budget(std::string_view text, KvParams& kv);

// "exact", "gate" or "best_effort". Error (kUsage) as above.
Status set_kv_quality(std::string_view name, KvParams& kv);

// Error (kUsage) naming the field, the limit and the value.
Status validate(const KvParams& kv);

// Requires: validate(kv) holds.
kv::KvPolicySettings policy_settings(const KvParams& kv);

}  // namespace kvasir
