// Learns the forecast of attention while a server runs, on a thread of the lowest priority.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "kv/policy/forecast_learner.h"
#include "kvasir/result.h"
#include "learn/forecast_learning.h"
#include "learn/shadow_queue.h"

namespace kvasir::learn {

struct TrafficLearnerConfig {
  std::function<bool(RequestId)> is_shadow;              // whether a request is chosen; any thread
  std::function<Status(const Champion&)> save;           // a forecast that was promoted; the learner's thread
  std::function<void(const std::string& line)> warn;     // what an operator should know; the learner's thread
  std::int64_t first_version = 0;                        // of the forecast that the model is loaded with
  double cpu_share = 0.01;                               // of all processors' time, at most, on average
  LearningConfig learning = {};
};

// Shadows wait for it one by one. It looks at the clock and at waiting requests between pieces of some milliseconds.
//
// Thread safety: as kv::ForecastLearner's.
class TrafficLearner final : public kv::ForecastLearner {
 public:
  explicit TrafficLearner(TrafficLearnerConfig config);
  ~TrafficLearner() override;
  TrafficLearner(const TrafficLearner&) = delete;
  TrafficLearner& operator=(const TrafficLearner&) = delete;

  bool begin(const kv::KvCacheConfig& config, const std::string& model_path) override;
  std::shared_ptr<const kv::ServedForecast> served() const override;
  std::shared_ptr<const kv::KvPolicy> shadow(RequestId id) override;
  void note_waiting(std::int64_t num_requests) override { num_waiting_.store(num_requests, std::memory_order_relaxed); }
  KvLearningStats stats() const override;

 private:
  void run(const std::stop_token& stop);
  void learn(const ShadowSequence& sequence, const std::stop_token& stop);
  void train(const std::stop_token& stop);
  void tell(LearningNews news);
  void publish();
  bool rest(const std::stop_token& stop);

  const TrafficLearnerConfig config_;
  const std::shared_ptr<ShadowQueue> queue_ = std::make_shared<ShadowQueue>();
  std::atomic<std::int64_t> num_waiting_ = 0;
  std::string model_path_;                      // of the first model
  std::unique_ptr<ForecastLearning> learning_;  // the thread's, once it is there
  double earned_s_ = 0.0, last_look_s_ = 0.0, spent_s_ = 0.0;  // processor time; the thread's

  mutable std::mutex mutex_;
  std::shared_ptr<const kv::ServedForecast> served_;  // guarded
  KvLearningStats stats_;                             // guarded
  std::jthread thread_;                               // last
};

}  // namespace kvasir::learn
