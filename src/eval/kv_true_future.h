// Windows under a policy that knows which attention will come.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "engine/loaded_model.h"
#include "eval/run_request.h"
#include "kv/policy/registry.h"
#include "kvasir/engine.h"
#include "learn/attention_record.h"
#include "learn/true_future.h"

namespace kvasir::eval {

// Requests of this process find the policy as long as this lives. Thread safety: none.
class KvTrueFuture {
 public:
  static constexpr std::string_view kPolicy = learn::TrueFuture::kName;

  // Loads the model once more, for itself. Errors: those of the loading, kUnmet (no layer without a window).
  static Result<std::unique_ptr<KvTrueFuture>> open(const EngineConfig& config);
  explicit KvTrueFuture(LoadedModel loaded) : loaded_(std::move(loaded)), is_added_(policy_) {}

  // Reads the window, so that the next requests with this prompt know their future. Errors: kCancelled.
  Status read(std::span<const TokenId> window, const KeepGoing& keep_going);

 private:
  LoadedModel loaded_;
  learn::TrueFuture policy_;
  std::unique_ptr<learn::AttentionRecord> record_;
  kv::AddedPolicy is_added_;
};

}  // namespace kvasir::eval
