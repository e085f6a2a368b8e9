// The policy that knows which attention will come: the planner's best case, for comparison.
#pragma once

#include <string_view>
#include <vector>

#include "kv/policy/policy.h"
#include "learn/attention_record.h"

namespace kvasir::learn {

// Plans as ladder-priced does, by the attention that a text's blocks got while nothing was dropped. A block is asked for by
// chance alone where nothing is known. Thread safety: read() and requests under it come in turn.
class TrueFuture final : public kv::KvPolicy {
 public:
  static constexpr std::string_view kName = "true-future";

  // Borrows the record of the text that the next requests read; null: of none, so that decayed attention is the forecast.
  void read(const AttentionRecord* record) { record_ = record; }

  std::string_view name() const override { return kName; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

 private:
  const AttentionRecord* record_ = nullptr;
};

}  // namespace kvasir::learn
