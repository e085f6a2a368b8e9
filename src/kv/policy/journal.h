// A KV policy's actions, as plain records for a log.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kv/cells/sequence_scores.h"
#include "kv/policy/bytes_use.h"
#include "kv/policy/policy.h"
#include "kvasir/ids.h"

namespace kvasir::kv {

// One sequence's stay in the cache, from open() to free(): a preempted sequence has several.
enum class HoldId : std::int64_t {};
inline constexpr HoldId kNoHold = HoldId{0};

// The loaded model that all later records are about.
struct RunRecord {
  struct Group {
    std::vector<std::int32_t> layers;  // cell c of a block is layers[c / num_kv_heads], head c % num_kv_heads
    std::int32_t num_kv_heads = 1;
  };
  std::string model;
  std::vector<Group> groups;
  std::int32_t query_heads_per_kv_head = 1;
  std::int32_t head_dim = 64;
  FormatCosts format_costs;
};

// Whose KV a hold is. The cache itself does not ask.
struct KvHolder {
  RequestId request_id{};
  std::int32_t choice = 0;
  std::int32_t num_prompt_tokens = 0;
  std::string client_id = {};  // its client's name for the request; may be empty
};

// Before the first step of a hold.
struct SequenceRecord {
  HoldId hold = kNoHold;
  KvHolder holder;
  KvPolicySettings policy;
};

// A cell that became coarser. The numbers are as the policy saw them.
struct ActionRecord {
  std::int32_t block = 0;  // logical
  std::int32_t cell = 0;
  float forecast = kNoForecast;  // as in CellAction
  float score = 0.0f;            // attention in the policy's memory
  std::uint8_t group = 0;
  KvFormat from = KvFormat::kF16;
  KvFormat to = KvFormat::kGone;
  ActionReason reason = ActionReason::kUnstated;
  bool is_shared = false;  // others hold the block too, and agreed
};

// One time a policy acted, or others agreed to what it had wished for.
struct StepRecord {
  HoldId hold = kNoHold;
  std::int32_t num_computed_tokens = 0;
  bool is_planned = true;  // false: a wish came true; then only the actions count
  // As Usage::kv_bytes_share.
  double bytes_share_before = 1.0;
  double bytes_share_after = 1.0;
  std::array<std::int32_t, kNumKvFormats> num_cells = {};  // by format, afterwards, in the same layers
  // Share of the remembered attention that was paid to what is gone by now, over layers and heads; NaN when
  // the policy remembers none.
  float lost_share_max = kNoForecast;
  float lost_share_mean = kNoForecast;
  std::int32_t num_waiting = 0;  // cells whose other holders have not agreed yet
  bool ran_out_of_room = false;  // other planned actions wait for the next time
  float policy_ms = 0.0f;
  float record_ms = 0.0f;  // the time of gathering this record
  std::vector<ActionRecord> actions;
};

// The sequence gave its KV back.
struct SequenceEnd {
  HoldId hold = kNoHold;
  std::int32_t num_computed_tokens = 0;
  BytesUse bytes_use;
  std::vector<SequenceScores> scores;  // by layer group, as they were at the end
};

// An answer that was chosen to be scored again by the exact path.
struct ShadowRecord {
  RequestId request_id{};
  std::string client_id = {};  // its client's name for the request; may be empty
  std::string tenant = {};     // likewise
  std::string policy;          // that served it, by name
  std::string quality;         // by the name that requests use
  double budget_share = 1.0;
  std::int64_t budget_bytes = 0;
  std::int64_t num_prompt_tokens = 0, num_cached_tokens = 0, num_answer_tokens = 0;
  bool is_downgraded = false;  // another policy served it than was asked for
  bool is_scored = false;      // false: there was no time or the policy had not acted, and nothing below is known
  double kl = 0.0;             // nats a token, at least
  double log_ratio = 0.0;      // of the chosen tokens: served less exact log-probability, mean
  std::int64_t num_tokens_agreed = 0;
};

// Where the records go. Called on the engine thread, in the order in which things happen: an implementation
// must be quick and must not block. begin_run() comes first, before that thread starts. add_shadow() alone may come from
// any thread, also several at once.
class PolicyJournal {
 public:
  virtual ~PolicyJournal() = default;
  // The time of a steady clock: this layer has none of its own.
  virtual double now_ms() const = 0;
  virtual void begin_run(RunRecord run) = 0;
  virtual void begin_sequence(SequenceRecord sequence) = 0;
  virtual void add_step(StepRecord step) = 0;
  virtual void end_sequence(SequenceEnd end) = 0;
  virtual void add_shadow(ShadowRecord shadow) = 0;
};

}  // namespace kvasir::kv
