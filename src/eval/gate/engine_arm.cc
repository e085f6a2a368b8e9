#include "eval/gate/engine_arm.h"

namespace kvasir::eval {

Result<PromptScore> EngineArm::score(std::span<const TokenId> text, std::int32_t policy_acts_at,
                                     const LogitsObserver& observer) {
  KvParams kv = kv_;
  kv.only_at_tokens = policy_acts_at;
  return score_prompt(engine_, {text.begin(), text.end()}, kv, observer, keep_going_, adapter_);
}

Result<ArmAnswer> EngineArm::answer(const ArmQuestion& question) {
  Request request;
  request.prompt_token_ids = question.prompt;
  request.kv = kv_;
  request.kv.only_at_tokens = question.policy_acts_at;
  request.kv.is_share_of_present = question.policy_acts_at > 0;
  request.use_prefix_cache = false;
  request.adapter = adapter_;
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = question.max_tokens;
  request.sampling.ignore_eos = question.ignores_end;
  if (!question.schema.empty()) request.guide = Guide{.kind = Guide::Kind::kJsonSchema, .text = question.schema};
  KVASIR_TRY(RequestRun run, run_request(engine_, std::move(request), keep_going_));
  return ArmAnswer{.token_ids = std::move(run.token_ids), .is_ended = run.is_ended};
}

}  // namespace kvasir::eval
