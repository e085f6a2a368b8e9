// Acts of a priced ladder that are only thought, while a text is read with nothing dropped: what each budget would cost.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/cells/sequence_scores.h"
#include "kv/policy/block_forecast.h"
#include "kv/policy/policy.h"
#include "learn/plan_regret.h"

namespace kvasir::learn {

// An act on blocks that are all as they were written. Costs are means over heads, per query and query head: with all heads'
// weights 1 and all attention lost, FormatCosts' cost of a drop.
struct PlanTrial {
  std::int32_t num_tokens = 0;  // computed by then
  double budget = 1.0;          // a share of the present tokens' bytes
  bool is_known = false;        // the attention of the next kHorizonBlocks blocks' queries came; else only `planned` counts
  PlanRegret regret;
};

// A policy that does nothing but look. Nothing being dropped, the attention that each block gets later is known of every block.
// The log of a run that drops knows it only of what stayed. Thread safety: none; plan() is const for its callers alone.
class PlanTrials final : public kv::KvPolicy {
 public:
  struct Options {
    std::vector<std::int32_t> marks;  // numbers of full blocks, ascending
    std::vector<double> budgets;
    std::int32_t query_heads_per_kv_head = 1;
    bool uses_network = false;  // forecasts are the model's learned ones, where it has them
  };
  // One sequence, whose steps end where blocks do.
  explicit PlanTrials(Options options) : options_(std::move(options)) {}

  std::string_view name() const override { return "plan-trials"; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

  // By tokens, then by budget as they were given.
  std::vector<PlanTrial> trials() const;

 private:
  using Attention = std::vector<std::vector<float>>;  // by cell and block
  struct Noted {
    std::int32_t mark = 0;
    kv::SequenceScores scores;  // as they were
    std::vector<kv::BlockForecast> forecasts;
    Attention later;
  };
  struct Group {
    Attention before;  // the memory at the act before
    std::vector<Noted> noted;
  };
  struct Sum {
    PlanRegret planned, known;
    std::int32_t num_cells = 0, num_known_cells = 0;
  };

  void see(const kv::PolicyView& view, Group& group) const;
  void note(const kv::PolicyView& view, Group& group) const;
  void judge(const kv::PolicyView& view, const Noted& noted) const;

  const Options options_;
  mutable std::map<std::int32_t, Group> groups_;                       // by layer group
  mutable std::map<std::pair<std::int32_t, std::size_t>, Sum> sums_;  // by mark and budget, over groups
};

}  // namespace kvasir::learn
