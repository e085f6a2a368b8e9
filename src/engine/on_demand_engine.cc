#include "engine/on_demand_engine.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace kvasir {

OnDemandEngine::OnDemandEngine(ModelInfo described) {
  infos_.push_back(std::make_unique<const ModelInfo>(std::move(described)));
}

std::shared_ptr<Engine> OnDemandEngine::loaded() const {
  const std::shared_lock lock(mutex_);
  return loaded_;
}

bool OnDemandEngine::is_loaded() const { return loaded() != nullptr; }

std::unexpected<Error> OnDemandEngine::not_loaded() const {
  return make_error(ErrorKind::kUnavailable, "the model is not loaded");
}

// The same file gives the same description each time, but for the room that its context has.
void OnDemandEngine::attach(std::unique_ptr<Engine> loaded) {
  const AdapterNames of_start = loaded->adapters();
  restore_adapters(*loaded);
  const std::unique_lock lock(mutex_);
  adapters_of_start_ = of_start;
  adapters_ = loaded->adapters();
  const ModelInfo& info = loaded->model_info();
  const bool is_known = infos_.size() > 1 && infos_.back()->max_model_len_tokens == info.max_model_len_tokens;
  if (!is_known) infos_.push_back(std::make_unique<const ModelInfo>(info));
  loaded_ = std::move(loaded);
}

// Adapters that came and went while the model was there before. One whose file is gone is not found any more.
void OnDemandEngine::restore_adapters(Engine& engine) const {
  std::vector<AdapterConfig> added;
  std::set<std::string, std::less<>> removed;
  {
    const std::shared_lock lock(mutex_);
    added = added_adapters_;
    removed = removed_adapters_;
  }
  for (const std::string& name : removed) static_cast<void>(engine.unload_adapter(name));
  for (const AdapterConfig& adapter : added) static_cast<void>(engine.load_adapter(adapter));
}

AdapterNames OnDemandEngine::adapters() const {
  const std::shared_lock lock(mutex_);
  return loaded_ == nullptr ? adapters_ : loaded_->adapters();
}

Status OnDemandEngine::load_adapter(const AdapterConfig& adapter) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return not_loaded();
  KVASIR_CHECKED(engine->load_adapter(adapter));
  const std::unique_lock lock(mutex_);
  std::erase_if(added_adapters_, [&](const AdapterConfig& known) { return known.name == adapter.name; });
  added_adapters_.push_back(adapter);
  return {};
}

Status OnDemandEngine::unload_adapter(std::string_view name) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return not_loaded();
  KVASIR_CHECKED(engine->unload_adapter(name));
  const std::unique_lock lock(mutex_);
  std::erase_if(added_adapters_, [&](const AdapterConfig& known) { return known.name == name; });
  if (std::ranges::find(*adapters_of_start_, name) != adapters_of_start_->end()) removed_adapters_.emplace(name);
  return {};
}

void OnDemandEngine::prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return sink(not_loaded());
  engine->prepare_adapter(name, std::move(stop), std::move(sink));
}

void OnDemandEngine::detach() {
  std::shared_ptr<Engine> leaving;
  {
    const std::unique_lock lock(mutex_);
    leaving = std::exchange(loaded_, nullptr);
    if (leaving != nullptr) adapters_ = leaving->adapters();
  }
  if (leaving != nullptr) leaving->drain(0);
}

const ModelInfo& OnDemandEngine::model_info() const {
  const std::shared_lock lock(mutex_);
  return *infos_.back();
}

const text::Tokenizer* OnDemandEngine::tokenizer() const {
  const std::shared_ptr<Engine> engine = loaded();
  return engine == nullptr ? nullptr : engine->tokenizer();
}

const text::ChatTemplate* OnDemandEngine::chat_template() const {
  const std::shared_ptr<Engine> engine = loaded();
  return engine == nullptr ? nullptr : engine->chat_template();
}

Result<std::vector<RequestId>> OnDemandEngine::submit(std::vector<Submission> submissions) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return not_loaded();
  return engine->submit(std::move(submissions));
}

Result<std::vector<RequestId>> OnDemandEngine::submit_some(std::vector<Submission> submissions) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return not_loaded();
  return engine->submit_some(std::move(submissions));
}

std::shared_ptr<void> OnDemandEngine::keep_open() {
  const std::shared_ptr<Engine> engine = loaded();
  return engine == nullptr ? nullptr : engine->keep_open();
}

void OnDemandEngine::prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop,
                                   GuideSink sink) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return sink(not_loaded());
  engine->prepare_guide(guide, tenant, std::move(stop), std::move(sink));
}

Status OnDemandEngine::resume_kv_policy(std::string_view policy) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return not_loaded();
  return engine->resume_kv_policy(policy);
}

void OnDemandEngine::cancel(RequestId id) {
  if (const std::shared_ptr<Engine> engine = loaded()) engine->cancel(id);
}

EngineStats OnDemandEngine::stats() const {
  const std::shared_ptr<Engine> engine = loaded();
  return engine == nullptr ? EngineStats() : engine->stats();
}

void OnDemandEngine::inspect(EngineSnapshotSink sink) {
  const std::shared_ptr<Engine> engine = loaded();
  if (engine == nullptr) return sink(EngineSnapshot());
  engine->inspect(std::move(sink));
}

void OnDemandEngine::drain(std::int64_t timeout_ms) {
  if (const std::shared_ptr<Engine> engine = loaded()) engine->drain(timeout_ms);
}

}  // namespace kvasir
