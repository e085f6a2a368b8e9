// The policy of a never-evict shadow: it looks on where another would act.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "kv/policy/block_forecast.h"
#include "kv/policy/policy.h"
#include "learn/shadow_act.h"

namespace kvasir::learn {

// One sequence's: of its acts it keeps the last whose horizon has come, of at most kMaxBytes. Steps may have any length. A
// sequence that is computed anew begins anew.
//
// Thread safety: none; plan() is const for its callers alone.
class ShadowWatch final : public kv::KvPolicy {
 public:
  using Deliver = std::function<void(ShadowSequence)>;
  // `deliver` is called when the sequence has ended, where any of its acts has had its horizon.
  explicit ShadowWatch(Deliver deliver) : deliver_(std::move(deliver)) {}
  ShadowWatch(const ShadowWatch&) = delete;
  ShadowWatch& operator=(const ShadowWatch&) = delete;
  ~ShadowWatch() override;

  std::string_view name() const override { return "full-cache-shadow"; }
  kv::AttentionMemory memory() const override { return kv::DecayedMass::memory(); }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

  static constexpr std::int64_t kMaxBytes = 512 << 10;  // of a group's act
  static constexpr std::int32_t kFirstMark = 16;        // blocks before the first act that is noted

 private:
  struct Noted {
    ShadowAct act;
    std::int32_t num_queries = 0;  // so far
  };
  struct Group {
    std::int32_t num_computed_tokens = 0;
    std::int32_t next_mark = kFirstMark;
    std::vector<std::vector<float>> before;  // by cell: the memory at the act before
    std::vector<Noted> noted;
  };

  void see(const kv::PolicyView& view, Group& group, std::int32_t num_queries) const;
  void note(const kv::PolicyView& view, Group& group) const;

  const Deliver deliver_;
  mutable std::map<std::int32_t, Group> groups_;
  mutable std::map<std::int32_t, ShadowAct> done_;  // by group
};

}  // namespace kvasir::learn
