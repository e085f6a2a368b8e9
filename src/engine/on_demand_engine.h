// An engine whose model may be out of memory for a while.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "kvasir/engine.h"

namespace kvasir {

// Stands for the loaded engine while there is one. Without one there is no tokenizer, requests are refused with
// kUnavailable, and counts are those of an engine that has done nothing.
//
// Thread safety: as Engine's. attach() and detach() come from one thread. What tokenizer() and chat_template() gave is
// valid until detach().
class OnDemandEngine final : public Engine {
 public:
  // `described`: as far as it is known before it is loaded.
  explicit OnDemandEngine(ModelInfo described);

  void attach(std::unique_ptr<Engine> loaded);
  // Cancels what runs and gives all memory back. Requires: nobody uses what the loaded engine lent.
  void detach();
  bool is_loaded() const;

  const ModelInfo& model_info() const override;
  const text::Tokenizer* tokenizer() const override;
  const text::ChatTemplate* chat_template() const override;
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override;
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override;
  std::shared_ptr<void> keep_open() override;
  void prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) override;
  // Without the model, the adapters that it had when it left. It gets them back when it comes.
  AdapterNames adapters() const override;
  Status load_adapter(const AdapterConfig& adapter) override;
  Status unload_adapter(std::string_view name) override;
  void prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) override;
  Status resume_kv_policy(std::string_view policy) override;
  void cancel(RequestId id) override;
  EngineStats stats() const override;
  void inspect(EngineSnapshotSink sink) override;
  void drain(std::int64_t timeout_ms) override;

 private:
  // Null: out of memory. A caller that holds it keeps the engine for so long.
  std::shared_ptr<Engine> loaded() const;
  std::unexpected<Error> not_loaded() const;
  void restore_adapters(Engine& engine) const;

  mutable std::shared_mutex mutex_;
  std::shared_ptr<Engine> loaded_;                       // guarded
  std::vector<std::unique_ptr<const ModelInfo>> infos_;  // guarded; callers may hold a reference to each
  // Guarded: how its adapters differ from those that it starts with.
  std::vector<AdapterConfig> added_adapters_;
  std::set<std::string, std::less<>> removed_adapters_;
  AdapterNames adapters_of_start_ = std::make_shared<const std::vector<std::string>>();  // guarded
  AdapterNames adapters_ = std::make_shared<const std::vector<std::string>>();  // guarded
};

}  // namespace kvasir
