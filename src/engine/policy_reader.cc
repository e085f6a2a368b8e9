#include "engine/policy_reader.h"

#include <vector>

#include "kv/kv_cache_manager.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"

namespace kvasir {

Status read_with_policy(LoadedModel& loaded, std::span<const TokenId> text, const kv::KvPolicy& policy,
                        const std::function<bool()>& keep_going, std::int32_t step_tokens) {
  kv::KvCacheManager kv(loaded.kv);
  sched::Scheduler scheduler({.max_num_seqs = 1, .max_num_batched_tokens = step_tokens}, kv);
  runtime::ModelRunner runner(*loaded.model, *loaded.backend, loaded.kv_views(kv.cells()),
                              loaded.prefill_only_memory(kv.cells(), kv.prefill_only().group()), loaded.max_logit_rows);
  sched::SequenceRequest request;
  request.prompt_token_ids.assign(text.begin(), text.end());
  request.use_prefix_cache = false;
  request.kv_policy.policy = &policy;
  request.stop.max_tokens = 1;
  KVASIR_CHECKED(scheduler.add(request, {}));
  SamplingParams params;
  params.temperature = 0.0f;
  while (scheduler.has_unfinished()) {
    if (keep_going && !keep_going()) return make_error(ErrorKind::kCancelled, "interrupted");
    const sched::SchedulerOutput& output = scheduler.schedule({});
    const std::vector<runtime::SamplingTask> tasks(output.sequences.size(),
                                                   {.params = &params, .allowed = sampling::AllowedTokens::all()});
    static_cast<void>(runner.run(output, tasks));
    static_cast<void>(scheduler.update(runner.sampled(), {}));
  }
  return {};
}

}  // namespace kvasir
