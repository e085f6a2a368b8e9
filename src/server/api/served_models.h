// The models that a server answers for, and which of them are in memory.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/on_demand_engine.h"
#include "kvasir/engine.h"
#include "kvasir/result.h"
#include "server/api_error.h"

namespace kvasir::server::api {

struct ApiContext;

// A model as the operator names it.
struct ServedModel {
  std::string name;                // in answers
  std::vector<std::string> names;  // further ones that requests may use
  std::string path = {};           // where it is, as the operator wrote it; to show
  std::shared_ptr<OnDemandEngine> engine;
  // Loads it; runs on a thread of its own. It stops with kCancelled soon after `is_cancelled` has become true.
  // Null: it is attached, and stays.
  std::function<Result<std::unique_ptr<Engine>>(const std::atomic<bool>& is_cancelled)> load = nullptr;
  std::function<void()> unloaded = nullptr;  // told on the same thread when its memory is back
  bool was_pulled = false;                   // by a request, which may delete it again
};

enum class ModelState : std::uint8_t { kKnown, kLoading, kLoaded, kFailed };
std::string_view name_of(ModelState state);

struct ModelStatus {
  std::size_t index = 0;
  std::string name;
  std::vector<std::string> names;
  std::string path;
  ModelState state = ModelState::kKnown;
  std::string failure;         // why the last loading failed
  std::int64_t num_users = 0;  // requests that are being answered
  std::int64_t idle_ms = 0;    // since the last one ended
  double load_ms = 0.0;        // how long the last loading took
};

// One model is loaded at a time, in the order in which they were asked for. Where no more fit, the one that nobody uses
// and that was used longest ago leaves. Where all are in use, the one used longest ago takes no new requests, ends
// those that it has, and leaves.
//
// Models may be added and removed. A model keeps its index and its context, which nobody else ever gets.
//
// Thread safety: any thread; add() and remove() one at a time. Callbacks run on the caller's thread or on the loading
// one, without a lock.
class ServedModels {
 public:
  struct Config {
    std::int32_t max_loaded = 0;          // at once; 0: all
    std::chrono::seconds keep_alive{0};   // an unused model leaves after so long; 0: when another needs its room
    bool any_name = false;                // names that nobody knows are the first model's
  };

  static constexpr std::size_t kMaxAdded = 256;

  // The models' engines may be attached already. Requires: one model at least.
  ServedModels(std::vector<ServedModel> models, Config config);
  ~ServedModels();
  ServedModels(const ServedModels&) = delete;
  ServedModels& operator=(const ServedModels&) = delete;

  // Those that are served, ascending. The first one stays.
  std::vector<std::size_t> indices() const;
  bool has_one() const;
  bool takes_any_name() const { return config_.any_name; }
  std::chrono::seconds keep_alive() const { return config_.keep_alive; }
  const ServedModel& model(std::size_t index) const { return entries_[index]->model; }
  // The contexts of the models, in their order, before anything is asked. `make_context` makes those of added ones.
  using MakeContext = std::function<ApiContext*(const ServedModel& model)>;
  void bind(const std::vector<ApiContext*>& contexts, MakeContext make_context);
  // False: kMaxAdded were added already. Requires: all models may be unloaded, and the name is not served.
  bool add(ServedModel model);
  // Nobody finds it any more. Returns when its requests have ended and its memory is back; false: `stop` came first.
  // Requires: not the first one.
  bool remove(std::size_t index, const std::stop_token& stop);
  ApiContext& context(std::size_t index) const { return *contexts_[index]; }

  // The model of that name, the first one's if it is empty; npos: there is none.
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  std::size_t find(std::string_view name) const;
  // Likewise, whatever `any_name` says. An adapter's name is its model's.
  std::size_t find_named(std::string_view name) const;
  // Whether a model is called so, and no adapter.
  bool is_model(std::string_view name) const;

  // Gives the model when it is loaded, for as long as the lease is kept. Errors: 503 (no memory for it, or the server
  // ends), 500 (its file is broken), 404 (it was removed meanwhile).
  using Lease = std::shared_ptr<const void>;
  using Then = std::function<void(ApiResult<Lease>)>;
  void acquire(std::size_t index, Then then);
  // It leaves as soon as nobody uses it. False: it was not loaded.
  bool unload(std::size_t index);

  std::vector<ModelStatus> status() const;
  ModelStatus status_of(std::size_t index) const;
  // All engines end what they do within the time.
  void drain(std::int64_t timeout_ms);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    explicit Entry(ServedModel served) : model(std::move(served)) {}

    ServedModel model;
    std::atomic<bool> is_removed{false};
    ModelState state = ModelState::kKnown;
    bool is_leaving = false;  // takes nobody new
    bool was_asked_to_leave = false;
    std::int64_t num_users = 0;
    Clock::time_point last_use = Clock::now();
    std::deque<Then> waiting;
    std::string failure;
    double load_ms = 0.0;
  };

  void run();
  void serve_next(std::unique_lock<std::mutex>& lock, std::size_t index);
  void make_room(std::unique_lock<std::mutex>& lock, std::size_t index);
  void load(std::unique_lock<std::mutex>& lock, Entry& entry);
  void unload(std::unique_lock<std::mutex>& lock, std::size_t index);
  void answer_waiting(std::unique_lock<std::mutex>& lock, Entry& entry, const ApiError* error);
  std::size_t least_recently_used(bool only_idle) const;
  std::size_t expired() const;
  std::int64_t num_loaded() const;
  std::span<const std::unique_ptr<Entry>> entries() const { return {entries_.data(), num_entries_.load()}; }
  Lease lease_of(Entry& entry);
  void give_back(Entry& entry);

  const Config config_;
  // The first num_entries_ are there, and stay until the end: they are read without a lock.
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<ApiContext*> contexts_;
  std::atomic<std::size_t> num_entries_{0};
  MakeContext make_context_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> wanted_;  // guarded, as the entries' states; each once
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;  // last. Only where models are loaded on demand
};

}  // namespace kvasir::server::api
