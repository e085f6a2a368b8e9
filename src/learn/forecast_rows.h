// Rows for learning a forecast of attention: blocks as a policy saw them, and the attention that they got afterwards.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/policy/forecast_inputs.h"
#include "kv/policy/policy.h"

namespace kvasir::learn {

struct ForecastRow {
  kv::ForecastInputs::Inputs inputs;
  std::int32_t cell = 0;  // through all layers without a window
  float target = 0.0f;    // attention of the next kHorizonBlocks blocks' queries, in means of the head's long memories
  float asked = 0.0f;     // 1: one of these blocks' queries paid it kAskedShare of their attention; or a chance
};

inline constexpr std::int32_t kHorizonBlocks = 32;
inline constexpr float kAskedShare = 0.2f;

// The target of a block that got so much attention in a horizon, beside its head's mean memory.
float target_of(float later_attention, float mean);

// A policy that does nothing but look. After blocks [marks] it notes its view of each block, and after kHorizonBlocks more
// what became of it. Thread safety: none; plan() is const for its callers alone.
class ForecastRows final : public kv::KvPolicy {
 public:
  // `marks`: numbers of full blocks, ascending. One sequence, whose steps end where blocks do.
  explicit ForecastRows(std::vector<std::int32_t> marks) : marks_(std::move(marks)) {}

  std::string_view name() const override { return "forecast-rows"; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

  // The rows of marks that had all of their horizon. Empties it.
  std::vector<ForecastRow> take() const { return std::exchange(rows_, {}); }

 private:
  // A cell's blocks at a mark.
  struct Noted {
    std::int32_t mark = 0;
    float mean = 0.0f;
    std::vector<kv::ForecastInputs::Inputs> inputs;
    std::vector<float> later, greatest_share;
  };
  struct Cell {
    std::vector<float> scores;  // of the act before
    std::vector<Noted> noted;
  };

  void see(const kv::PolicyView& view, std::int32_t cell, Cell& seen) const;
  void emit(std::int32_t cell, const Noted& noted) const;

  const std::vector<std::int32_t> marks_;
  mutable std::map<std::int32_t, std::vector<Cell>> groups_;  // by layer group
  mutable std::vector<ForecastRow> rows_;
};

}  // namespace kvasir::learn
