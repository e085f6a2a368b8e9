// The KV of a request under a policy, as answers and logs say it.
#pragma once

#include "base/json_writer.h"
#include "kvasir/request.h"

namespace kvasir::server::observe {

// Appends "kv": {"bytes", "share", "dropped", "dropped_share"} to an open object; nothing without a policy. "kv_downgraded" is
// true where the policy that was asked for is held back, "kv_shadow" where a server that learns has left all of it as it was.
void member_kv_usage(JsonWriter& json, const KvUsage& use);

}  // namespace kvasir::server::observe
