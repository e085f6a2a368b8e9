// The oracle: what a sequence generates when it is alone in the world, with a flat KV array and no blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvasir/request.h"
#include "sim/workload.h"

namespace kvasir::sim {

// The toy model. Every token has a state, a hash of its token, position, namespace and, per layer group, of
// all KV it attends to in order; its KV in each group and the token after it follow from the state. So a
// sequence that reads one wrong slot gets a wrong state, and everything after it is wrong too.
//
// Whose KV a token's is: all tenants' in the full blocks of a public beginning, its namespace's behind it.
struct NamespaceHash {
  NamespaceHash(const Workload& workload, const sched::SequenceRequest& request);
  std::uint64_t at(std::int32_t position) const { return position < num_public_tokens ? kPublic : own; }

  static constexpr std::uint64_t kPublic = 0x7075626c6963u;
  std::uint64_t own;
  std::int32_t num_public_tokens = 0;
};
std::uint64_t begin_state(std::uint64_t namespace_hash, TokenId token, std::int32_t position);
std::uint64_t fold_attended(std::uint64_t state, std::uint64_t kv);
inline constexpr std::uint64_t kNextGroup = 0x67726f7570u;  // folded in after each group
std::uint64_t kv_of(std::uint64_t state, std::int32_t group);
TokenId sample(std::uint64_t state, std::uint64_t sample_seed, std::int32_t vocab_size);

class SoloRun {
 public:
  SoloRun(const Workload& workload, const SimRequest& request, std::int32_t choice);

  std::span<const TokenId> tokens() const { return tokens_; }  // prompt, then generated
  std::uint64_t state_at(std::int32_t position) const { return states_[static_cast<std::size_t>(position)]; }
  // The states of every token but the last generated one.
  std::int32_t num_states() const { return static_cast<std::int32_t>(states_.size()); }
  FinishReason finish_reason() const { return finish_reason_; }

 private:
  void run(std::span<const kv::LayerGroup> groups, const NamespaceHash& hash);
  std::optional<FinishReason> stopped(const sched::StopCriteria& stop, std::size_t num_prompt_tokens) const;

  std::vector<TokenId> tokens_;
  std::vector<std::uint64_t> states_;  // of every token but the last generated one
  FinishReason finish_reason_ = FinishReason::kLength;
};

}  // namespace kvasir::sim
