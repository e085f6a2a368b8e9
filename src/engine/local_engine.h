// The engine on this machine: one thread that owns scheduler, KV and model, and steps while there is work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "admission/load_snapshot.h"
#include "engine/active_request.h"
#include "engine/adapter_reloader.h"
#include "engine/adapter_uses.h"
#include "engine/draft_model.h"
#include "engine/draft_steps.h"
#include "engine/forced_runs.h"
#include "engine/guide_compiler.h"
#include "engine/kv_prefault.h"
#include "engine/loaded_model.h"
#include "engine/request_admission.h"
#include "engine/table_prefault.h"
#include "engine/traffic_learning.h"
#include "kv/kv_cache_manager.h"
#include "kvasir/engine.h"
#include "runtime/model_runner.h"
#include "sched/scheduler.h"

namespace kvasir {

// Callers and the engine thread meet at one mailbox; everything else belongs to the engine thread alone,
// without locks. With nothing to do the thread sleeps on the mailbox.
class LocalEngine final : public Engine {
 public:
  // `draft_model`: null where there is none.
  LocalEngine(const EngineConfig& config, LoadedModel loaded, std::unique_ptr<DraftModel> draft_model);
  ~LocalEngine() override;

  const ModelInfo& model_info() const override { return loaded_.info; }
  const text::Tokenizer* tokenizer() const override { return loaded_.tokenizer.get(); }
  const text::ChatTemplate* chat_template() const override { return loaded_.chat_template.get(); }
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override;
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override;
  std::shared_ptr<void> keep_open() override;
  void prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) override;
  AdapterNames adapters() const override { return loaded_.adapters->names(); }
  Status load_adapter(const AdapterConfig& adapter) override;
  Status unload_adapter(std::string_view name) override { return loaded_.adapters->unload(name); }
  void prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) override;
  void freeze_kv_policy(const KvPromise& broken) override;
  void cancel(RequestId id) override;
  EngineStats stats() const override;
  void inspect(EngineSnapshotSink sink) override;
  void drain(std::int64_t timeout_ms) override;

 private:
  struct Arrival {
    RequestId id{};
    Submission submission;
    UsedAdapter adapter;
    std::int32_t expected_cached_tokens = 0;
  };
  struct Cancellation {
    RequestId id{};
  };
  struct Stream {
    ActiveRequest* request = nullptr;
    std::size_t choice = 0;
  };
  using Command = std::variant<Arrival, Cancellation, KvPromise, EngineSnapshotSink>;  // a promise: it is broken

  Result<std::vector<RequestId>> enter(std::vector<Submission> submissions, bool allow_part);
  Status compile_guide(Request& request);
  using Adapters = std::vector<UsedAdapter>;
  Status find_adapter(Request& request, Adapters& adapters);
  // With mutex_ held. `adapters`: of each submission.
  Result<std::vector<RequestId>> enqueue(std::vector<Submission>& submissions, Adapters& adapters, bool allow_part);

  // The engine thread.
  void run();
  bool wait_for_work();  // false: time to end
  void take_commands();
  void start_request(Arrival arrival);
  void cancel_request(RequestId id);
  void cancel_everything();
  void freeze(const KvPromise& broken);
  void end_request(ActiveRequest& request, FinishReason reason, const std::optional<Error>& error);
  void end_everything(FinishReason reason, const std::optional<Error>& error);
  void step();
  // The device gives no results any more: of this step, and of all others.
  void mark_lost(const std::string& reason, std::span<runtime::SequenceResult> results);
  void end_lost();
  void charge(const sched::SchedulerOutput& output, double step_ms);
  void end_expired(const sched::SchedulerOutput& output);
  void build_tasks(const sched::SchedulerOutput& output);
  void add_allowed_tokens(const sched::ScheduledSequence& sequence, const Stream& stream, runtime::SamplingTask& task);
  void finish_failed(const sched::SchedulerOutput& output, std::span<runtime::SequenceResult> results);
  void emit_update(const sched::SequenceUpdate& update, runtime::SequenceResult& result);
  void emit_end(ActiveRequest& request, std::size_t choice, FinishReason reason, std::optional<Error> error);
  void deliver(ActiveRequest& request, std::size_t choice, RequestOutput output);
  void publish_stats();
  void begin_beams(ActiveRequest& request);
  void take_proposals(const sched::SequenceUpdate& update);
  void advance_beams();
  void end_beams(ActiveRequest& request);
  void yield_held_beams();

  const EngineConfig config_;
  LoadedModel loaded_;
  kv::KvCacheManager kv_;
  sched::Scheduler scheduler_;
  GuideCompiler guides_;
  AdapterReloader adapter_reloader_{*loaded_.adapters};
  RequestAdmission admission_;  // guarded by mutex_
  runtime::ModelRunner runner_;

  // Confined to the engine thread.
  std::unordered_map<std::uint64_t, std::unique_ptr<ActiveRequest>> requests_;  // by RequestId
  std::map<SequenceId, Stream> streams_;
  KvPrefault kv_prefault_;
  TablePrefault table_prefault_;
  std::vector<runtime::SamplingTask> tasks_;
  ForcedRuns forced_runs_;  // of the step
  std::unique_ptr<DraftModel> draft_model_;
  DraftSteps draft_steps_;
  AdapterUses adapter_uses_;
  TrafficLearning learning_{config_.kv_learner, loaded_.kv, config_.model_path};
  std::vector<ActiveRequest*> ready_beams_;  // whose beams have all proposed in this step
  std::vector<SequenceId> scheduled_;  // whose results the step gave, in order
  EngineStats counters_;
  struct Delivered {
    std::string tenant, adapter;
  };
  std::vector<Delivered> delivered_;  // of requests whose last output went out since publish_stats()
  admission::LoadSnapshot load_;

  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable work_available_;
  std::condition_variable all_done_;
  std::vector<Command> mailbox_;
  std::uint64_t next_request_id_ = 1;
  EngineStats stats_;
  std::int64_t num_kept_open_ = 0;
  bool draining_ = false;
  bool is_closed_ = false;  // also for those that are is_admitted
  bool cancel_all_ = false;
  bool stopping_ = false;
  std::string lost_;  // why the device gives no results any more

  std::thread thread_;  // last: everything else exists while it runs
};

}  // namespace kvasir
