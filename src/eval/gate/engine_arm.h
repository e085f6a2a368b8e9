// An arm that is an engine, a KV policy and perhaps an adapter.
#pragma once

#include <string>
#include <utility>

#include "eval/gate/gate_arm.h"

namespace kvasir::eval {

// Borrows the engine. Its chunks are the engine's, so two arms have the same ones when their engines do.
class EngineArm final : public GateArm {
 public:
  EngineArm(Engine& engine, KvParams kv, std::string adapter, KeepGoing keep_going)
      : engine_(engine), kv_(std::move(kv)), adapter_(std::move(adapter)), keep_going_(std::move(keep_going)) {}

  Result<PromptScore> score(std::span<const TokenId> text, std::int32_t policy_acts_at,
                            const LogitsObserver& observer) override;
  Result<ArmAnswer> answer(const ArmQuestion& question) override;

 private:
  Engine& engine_;
  const KvParams kv_;
  const std::string adapter_;  // empty: the model as it is
  const KeepGoing keep_going_;
};

}  // namespace kvasir::eval
