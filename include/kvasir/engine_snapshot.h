// An engine at one moment: its requests one by one, and the owners of its KV memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"

namespace kvasir {

enum class RequestStage : std::uint8_t {
  kWaiting,     // in the queue, where a preempted one comes back to
  kPrefill,     // its prompt is being computed
  kGenerating,  // its answer
};

constexpr std::string_view name_of(RequestStage stage) {
  constexpr std::string_view kNames[] = {"waiting", "prefill", "generating"};
  return kNames[static_cast<std::size_t>(stage)];
}

// Numbers alone: nothing of what a request says.
struct RequestActivity {
  RequestId id{};
  std::string client_id;
  std::string tenant;
  RequestStage stage = RequestStage::kWaiting;
  std::int32_t priority = 0;
  std::int32_t num_choices = 1;
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_computed_tokens = 0;   // of the choice that is furthest, answer included
  std::int32_t num_cached_tokens = 0;     // of the prompt, from the prefix cache
  std::int32_t num_generated_tokens = 0;  // of all choices
  double age_ms = 0.0;                    // since it came
};

enum class KvOwner : std::uint8_t {
  kSequence,   // one running sequence
  kSequences,  // several that begin alike
  kTenant,     // cached: the tenant that computed it may find it again
  kPublic,     // cached: every tenant may
};
inline constexpr int kNumKvOwners = 4;

constexpr std::string_view name_of(KvOwner owner) {
  constexpr std::string_view kNames[kNumKvOwners] = {"sequence", "shared", "cached", "public"};
  return kNames[static_cast<std::size_t>(owner)];
}

struct KvUse {
  KvOwner owner = KvOwner::kSequence;
  std::string_view format;
  std::int64_t bytes = 0;  // above 0
};

struct EngineSnapshot {
  std::vector<RequestActivity> requests;  // as they came
  std::vector<KvUse> kv;
};

// Called once, on the engine thread between two steps: must be quick and must not call back into the engine.
using EngineSnapshotSink = std::function<void(EngineSnapshot)>;

}  // namespace kvasir
