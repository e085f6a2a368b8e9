// An engine that scores some of its answers again by the exact path, and holds back KV policies that break their promise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kvasir/engine.h"
#include "quality/quality_gate.h"
#include "quality/served_answer.h"
#include "quality/shadow_sampler.h"

namespace kvasir::quality {

struct ShadowConfig {
  double share = 0.0;  // of requests, 0 to 1
  GateConfig gate = {};
  std::uint64_t seed = 0;  // of the hash that chooses; 0: another one each time
  kv::PolicyJournal* journal = nullptr;  // told of each; borrowed
  std::function<void(const std::string&)> warn = {};  // when a policy is held back, and for other alarms; any thread
};

// Requests go to the engine inside. A chosen one is kept until it has ended, and then read once more when nobody waits, as
// a prompt that is only scored. Its client sees the same answer as otherwise. One that could not be scored is unknown. The
// scored ones count among the engine's requests.
//
// Thread safety: as Engine's.
class ShadowedEngine final : public Engine {
 public:
  // `exact`: scores instead of the engine inside, a model with the same tokens; null: the engine inside, without a policy.
  ShadowedEngine(std::unique_ptr<Engine> engine, ShadowConfig config, std::unique_ptr<Engine> exact = nullptr);
  ~ShadowedEngine() override;

  const ModelInfo& model_info() const override { return engine_->model_info(); }
  const text::Tokenizer* tokenizer() const override { return engine_->tokenizer(); }
  const text::ChatTemplate* chat_template() const override { return engine_->chat_template(); }
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override;
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override;
  std::shared_ptr<void> keep_open() override { return engine_->keep_open(); }
  void prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) override;
  AdapterNames adapters() const override { return engine_->adapters(); }
  Status load_adapter(const AdapterConfig& adapter) override { return engine_->load_adapter(adapter); }
  Status unload_adapter(std::string_view name) override { return engine_->unload_adapter(name); }
  void prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) override;
  Status resume_kv_policy(std::string_view policy) override;
  void freeze_kv_policy(const KvPromise& broken) override { engine_->freeze_kv_policy(broken); }
  void cancel(RequestId id) override { engine_->cancel(id); }
  EngineStats stats() const override;
  void inspect(EngineSnapshotSink sink) override { engine_->inspect(std::move(sink)); }
  void drain(std::int64_t timeout_ms) override;

  // Returns when every answer that ended before has been scored, or is unknown.
  void finish_scoring();

  static constexpr std::size_t kMaxKept = 64;  // answers that wait to be scored

 private:
  void prepare(Submission& submission);
  void watch(Submission& submission, KvPromise promise, bool is_downgraded);
  void enqueue(ServedAnswer answer);
  void score_all(const std::stop_token& stop);
  void score(const ServedAnswer& answer, const std::stop_token& stop);
  void note(const ServedAnswer& answer, const std::optional<ShadowScore>& score);
  bool others_wait() const;
  bool wait_for_idle(const std::stop_token& stop);
  Result<std::vector<PositionLogprobs>> read_again(const ServedAnswer& answer, const std::stop_token& stop);
  Engine& scorer() { return exact_ != nullptr ? *exact_ : *engine_; }

  const std::unique_ptr<Engine> engine_;
  const std::unique_ptr<Engine> exact_;
  const ShadowConfig config_;
  const ShadowSampler sampler_;
  std::atomic<std::uint64_t> num_requests_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  QualityGate gate_;                   // guarded
  std::deque<ServedAnswer> answers_;   // guarded: that have ended
  bool is_scoring_ = false;            // guarded: one of them
  std::jthread scoring_;               // last
};

}  // namespace kvasir::quality
