// How a request's KV is treated: as people write it, checked, and as the cache takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/cells/cell.h"
#include "kv/policy/policy.h"
#include "kvasir/engine.h"
#include "kvasir/request.h"
#include "kvasir/result.h"
#include "kvasir/shadow_stats.h"
#include "model/config.h"

namespace kvasir {

// "q12", "f16" and "f32"; nothing for other names.
std::optional<KvCacheType> kv_cache_type_named(std::string_view name);
// The format of new cells.
kv::KvFormat format_of_new_cells(KvCacheType type, const model::ModelConfig& model);

// "0.3" and "30%" are shares of the bytes in f16; "64MiB" and "65536" are bytes, at least 4 KiB. Error
// (kUsage): neither, or out of range; it says what must be, not of which field.
Status set_kv_budget(std::string_view text, KvParams& kv);

// "exact", "gate" or "best_effort". Error (kUsage) as above.
Status set_kv_quality(std::string_view name, KvParams& kv);

// Error (kUsage) naming the field, the limit and the value.
Status validate(const KvParams& kv);

// Whether it may leave cells in a coarser format than they were written in, or drop them.
bool is_compressed(const KvParams& kv);

// The budget as a share. One in bytes is that part of what the prompt and the longest answer take in layers without a window,
// at most; so the answer's keys and values are never less than this.
double budget_share(const Request& request, const ModelInfo& model);

// What is promised of answers under such treatment, `budget` being the request's share. A request for more lost attention
// than `gate` allows has the promise of best_effort.
KvPromise promise_of(const KvParams& kv, double budget);

// Whether its plans are by a learned forecast: ladder-learned with a budget to keep.
bool uses_learned_forecast(const KvParams& kv);

// Why the budget is not kept by an answer of `num_choices` whose keys and values are `usage`; nothing: it is, or there
// is none.
std::optional<std::string> unmet_budget(const KvParams& kv, const KvUsage& usage, std::int32_t num_choices);

// Requires: validate(kv) holds.
kv::KvPolicySettings policy_settings(const KvParams& kv);

}  // namespace kvasir
