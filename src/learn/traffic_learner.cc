#include "learn/traffic_learner.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "learn/shadow_watch.h"

namespace kvasir::learn {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAgain = 20ms, kLongestSleep = 1000ms;
constexpr double kMostEarned_s = 1.0;  // an idle hour does not buy a busy minute

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double thread_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace

TrafficLearner::TrafficLearner(TrafficLearnerConfig config) : config_(std::move(config)) {}

TrafficLearner::~TrafficLearner() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

bool TrafficLearner::begin(const kv::KvCacheConfig& config, const std::string& model_path) {
  if (thread_.joinable()) return model_path == model_path_;
  if (std::ranges::none_of(config.groups, &kv::LayerGroup::is_full)) return false;
  model_path_ = model_path;
  learning_ = std::make_unique<ForecastLearning>(config, Champion{.version = config_.first_version, .network = whole_network_of(config)}, config_.learning);
  publish();
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return true;
}

std::shared_ptr<const kv::ServedForecast> TrafficLearner::served() const {
  const std::scoped_lock lock(mutex_);
  return served_;
}

std::shared_ptr<const kv::KvPolicy> TrafficLearner::shadow(RequestId id) {
  if (!thread_.joinable() || !config_.is_shadow(id)) return nullptr;
  return std::make_shared<const ShadowWatch>([queue = queue_](ShadowSequence sequence) { queue->push(std::move(sequence)); });
}

KvLearningStats TrafficLearner::stats() const {
  const std::int64_t num_dropped = queue_->num_dropped();
  const std::scoped_lock lock(mutex_);
  KvLearningStats stats = stats_;
  stats.num_sequences_dropped = num_dropped;
  return stats;
}

void TrafficLearner::run(const std::stop_token& stop) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19);
  last_look_s_ = wall_s();
  spent_s_ = thread_cpu_s();
  while (const std::optional<ShadowSequence> sequence = queue_->pop(stop)) {
    if (!rest(stop)) return;
    learn(*sequence, stop);
  }
}

void TrafficLearner::learn(const ShadowSequence& sequence, const std::stop_token& stop) {
  tell(learning_->add(sequence, wall_s()));
  publish();
  if (learning_->wants_training()) train(stop);
}

void TrafficLearner::train(const std::stop_token& stop) {
  learning_->train([&](double) { return rest(stop); });
  publish();
}

// Waits until it has earned what it has spent, and nobody waits. False: it shall end.
bool TrafficLearner::rest(const std::stop_token& stop) {
  static const double num_processors = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));
  while (!stop.stop_requested()) {
    const double now_s = wall_s(), used_s = thread_cpu_s();
    earned_s_ += config_.cpu_share * num_processors * (now_s - last_look_s_) - (used_s - spent_s_);
    earned_s_ = std::min(earned_s_, kMostEarned_s);
    last_look_s_ = now_s;
    spent_s_ = used_s;
    if (earned_s_ >= 0.0 && num_waiting_.load(std::memory_order_relaxed) == 0) return true;
    // Twice as long as it takes, since to wake up costs something too.
    const std::chrono::duration<double> until_earned(-2.0 * earned_s_ / (config_.cpu_share * num_processors));
    std::this_thread::sleep_for(std::clamp<std::chrono::duration<double>>(until_earned, kLookAgain, kLongestSleep));
  }
  return false;
}

void TrafficLearner::tell(LearningNews news) {
  const Champion& champion = learning_->champion();
  switch (news) {
    case LearningNews::kNone:
    case LearningNews::kChampionStays: return;
    case LearningNews::kTurnedOff:
      return config_.warn(fmt::format("kv-learn: the plans of forecast version {} cost more than those of decayed mass; nothing is learned any more",
                                      champion.version));
    case LearningNews::kPromoted: break;
  }
  if (const Status saved = config_.save(champion); !saved) config_.warn(fmt::format("kv-learn: {}", saved.error().message));
  config_.warn(fmt::format("kv-learn: forecast version {} serves new requests; its plans cost {:.1f}% less on {} shadows", champion.version,
                           100.0 * (1.0 - champion.cost_ratio), champion.num_sequences));
}

void TrafficLearner::publish() {
  KvLearningStats stats{.state = learning_->state(),
                        .version = learning_->champion().version,
                        .num_sequences = learning_->num_sequences(),
                        .num_rows = static_cast<std::int64_t>(learning_->num_rows()),
                        .num_challengers = learning_->num_challengers(),
                        .num_promotions = learning_->num_promotions()};
  if (const Duel* duel = learning_->duel(); duel != nullptr) {
    stats.num_duel_sequences = duel->count();
    stats.duel_cost_ratio = duel->ratio();
    stats.log10_evidence = duel->log10_evidence();
  }
  const std::scoped_lock lock(mutex_);
  stats_ = stats;
  const bool is_new = stats.version > 0 && (served_ == nullptr || served_->version != stats.version);
  if (is_new && learning_->served() != nullptr) served_ = std::make_shared<const kv::ServedForecast>(*learning_->served());
}

}  // namespace kvasir::learn
