// The attention that a text's blocks get, of which nothing was dropped.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/policy.h"

namespace kvasir::learn {

// A policy that does nothing but look. Thread safety: none; plan() is const for its callers alone.
class AttentionRecord final : public kv::KvPolicy {
 public:
  // One sequence, whose steps end where blocks do.
  AttentionRecord() = default;

  std::string_view name() const override { return "attention-record"; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

  // The attention that the first `num_blocks` blocks of a cell get from the queries of the next kHorizonBlocks blocks, or of as
  // many as the text had, in the unit of BlockForecast. Empty: the text ended there, or had no such cell.
  std::vector<float> later(std::int32_t group, std::int32_t cell, std::int32_t num_blocks) const;

 private:
  struct Cell {
    std::vector<float> before;                        // the memory at the step before
    std::map<std::int32_t, std::vector<float>> steps;  // what each block got, by the number of full blocks
  };
  mutable std::map<std::int32_t, std::vector<Cell>> groups_;
};

}  // namespace kvasir::learn
