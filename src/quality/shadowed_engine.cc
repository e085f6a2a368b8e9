#include "quality/shadowed_engine.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <utility>

#include "engine/kv_params.h"
#include "quality/shadow_score.h"

namespace kvasir::quality {
namespace {

using namespace std::chrono_literals;

constexpr auto kLook = 20ms;           // between two looks whether others wait
constexpr auto kLongestWait = 60s;     // for a time when nobody does
constexpr auto kUndisturbed = 500ms;    // then it gives its place to others that have waited so long
constexpr double kLongWaitMs = 250.0;
constexpr auto kLongestScoring = 10min;

kv::SipKey key_of(std::uint64_t seed) {
  if (seed != 0) return {.k0 = seed, .k1 = ~seed};
  std::random_device entropy;
  const auto word = [&] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  return {.k0 = word(), .k1 = word()};
}

bool has_answer(const RequestOutput& last) {
  return last.finish_reason == FinishReason::kStop || last.finish_reason == FinishReason::kLength;
}

}  // namespace

ShadowedEngine::ShadowedEngine(std::unique_ptr<Engine> engine, ShadowConfig config, std::unique_ptr<Engine> exact)
    : engine_(std::move(engine)),
      exact_(std::move(exact)),
      config_(std::move(config)),
      sampler_(key_of(config_.seed), config_.share),
      gate_(config_.gate),
      scoring_([this](const std::stop_token& stop) { score_all(stop); }) {}

ShadowedEngine::~ShadowedEngine() {
  scoring_.request_stop();
  drain(0);
  scoring_.join();
}

void ShadowedEngine::drain(std::int64_t timeout_ms) {
  engine_->drain(timeout_ms);
  if (exact_ != nullptr) exact_->drain(0);
}

Result<std::vector<RequestId>> ShadowedEngine::submit(std::vector<Submission> submissions) {
  for (Submission& submission : submissions) prepare(submission);
  return engine_->submit(std::move(submissions));
}

Result<std::vector<RequestId>> ShadowedEngine::submit_some(std::vector<Submission> submissions) {
  for (Submission& submission : submissions) prepare(submission);
  return engine_->submit_some(std::move(submissions));
}

void ShadowedEngine::prepare(Submission& submission) {
  Request& request = submission.request;
  const std::uint64_t number = ++num_requests_;
  const std::string place = request.tenant.empty() ? std::to_string(number) : request.tenant;  // nobody is asked for a key
  const double budget = budget_share(request, model_info());
  QualityGate::Treatment treatment;
  {
    const std::scoped_lock lock(mutex_);
    treatment = gate_.treatment_of(std::move(request.kv), budget, place);
  }
  request.kv = std::move(treatment.kv);
  const bool can_be_scored = can_be_shadow(request) && (exact_ == nullptr || request.adapter.empty());
  if (can_be_scored && sampler_.is_shadow(number)) return watch(submission, std::move(treatment.promise), treatment.is_downgraded);
  if (!treatment.is_downgraded) return;
  submission.sink = [sink = std::move(submission.sink)](RequestOutput output) {
    output.usage.kv.is_downgraded = true;
    sink(std::move(output));
  };
}

void ShadowedEngine::watch(Submission& submission, KvPromise promise, bool is_downgraded) {
  const auto answer = std::make_shared<ServedAnswer>(begin_answer(submission.request, std::move(promise)));
  submission.sink = [this, answer, is_downgraded, sink = std::move(submission.sink)](RequestOutput output) {
    keep(*answer, output);
    output.usage.kv.is_downgraded |= is_downgraded;
    answer->is_downgraded |= is_downgraded;
    if (output.request_finished && has_answer(output)) enqueue(std::move(*answer));
    sink(std::move(output));
  };
}

void ShadowedEngine::enqueue(ServedAnswer answer) {
  {
    const std::scoped_lock lock(mutex_);
    if (answers_.size() < kMaxKept && !answer.logprobs.empty()) {
      answers_.push_back(std::move(answer));
      changed_.notify_all();
      return;
    }
  }
  note(answer, std::nullopt);
}

void ShadowedEngine::note(const ServedAnswer& answer, const std::optional<ShadowScore>& score) {
  if (config_.journal != nullptr) config_.journal->add_shadow(record_of(answer, score));
  std::optional<std::string> news;
  bool is_breach = false;
  {
    const std::scoped_lock lock(mutex_);
    if (!score) return gate_.note_unknown(answer.promise);
    const bool was_held_back = gate_.is_held_back(answer.promise);
    news = gate_.note(answer.promise, *score, answer.cost);
    is_breach = !was_held_back && gate_.is_held_back(answer.promise);
  }
  if (is_breach) engine_->freeze_kv_policy(answer.promise);
  if (news && config_.warn) config_.warn(*news);
}

void ShadowedEngine::score_all(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !answers_.empty(); })) {
    const ServedAnswer answer = std::move(answers_.front());
    answers_.pop_front();
    is_scoring_ = true;
    lock.unlock();
    score(answer, stop);
    lock.lock();
    is_scoring_ = false;
    changed_.notify_all();
  }
}

void ShadowedEngine::finish_scoring() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return answers_.empty() && !is_scoring_; });
}

void ShadowedEngine::score(const ServedAnswer& answer, const std::stop_token& stop) {
  const auto last = std::chrono::steady_clock::now() + kLongestWait;
  auto exact = read_again(answer, stop);
  while (!exact && exact.error().kind == ErrorKind::kCancelled && std::chrono::steady_clock::now() < last) exact = read_again(answer, stop);
  const auto score = exact ? score_shadow(answer.logprobs, *exact) : std::unexpected(exact.error());
  note(answer, score ? std::optional(*score) : std::nullopt);
}

bool ShadowedEngine::wait_for_idle(const std::stop_token& stop) {
  const auto last = std::chrono::steady_clock::now() + kLongestWait;
  while (engine_->stats().num_waiting > 0) {
    if (stop.stop_requested() || std::chrono::steady_clock::now() > last) return false;
    std::this_thread::sleep_for(kLook);
  }
  return !stop.stop_requested();
}

// Among them may be its own request, where seats are full.
bool ShadowedEngine::others_wait() const {
  if (exact_ != nullptr) return false;
  const EngineStats stats = engine_->stats();
  return stats.num_waiting > 0 && stats.oldest_waiting_ms > kLongWaitMs;
}

// The distribution of each of the answer's tokens. Error: kCancelled where others came in between.
Result<std::vector<PositionLogprobs>> ShadowedEngine::read_again(const ServedAnswer& answer, const std::stop_token& stop) {
  const auto unknown = [] { return make_error(ErrorKind::kUnavailable, "shadow: there was no time to score it"); };
  if (!wait_for_idle(stop)) return unknown();
  const auto result = std::make_shared<std::promise<RequestOutput>>();
  std::future<RequestOutput> ended = result->get_future();
  KVASIR_TRY(const RequestId id, scorer().submit(scoring_request(answer), [result](RequestOutput output) {
    if (output.request_finished) result->set_value(std::move(output));
  }));
  const auto begin = std::chrono::steady_clock::now();
  while (ended.wait_for(kLook) != std::future_status::ready) {
    const auto now = std::chrono::steady_clock::now();
    const bool is_over = stop.stop_requested() || now > begin + kLongestScoring;
    const bool gives_way = now > begin + kUndisturbed && others_wait();
    if (!is_over && !gives_way) continue;
    scorer().cancel(id);
    if (is_over) return unknown();
    return make_error(ErrorKind::kCancelled, "shadow: it has given its place to others");
  }
  try {
    RequestOutput output = ended.get();
    if (!has_answer(output)) return unknown();
    std::vector<PositionLogprobs>& scored = output.prompt_logprobs;
    if (!scored.empty()) scored.erase(scored.begin());  // nothing comes before the first token
    return std::move(scored);
  } catch (const std::future_error&) {  // the engine has gone without a word
    return unknown();
  }
}

void ShadowedEngine::prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) {
  engine_->prepare_guide(guide, tenant, std::move(stop), std::move(sink));
}

void ShadowedEngine::prepare_adapter(std::string_view name, std::stop_token stop, AdapterSink sink) {
  engine_->prepare_adapter(name, std::move(stop), std::move(sink));
}

Status ShadowedEngine::resume_kv_policy(std::string_view policy) {
  const std::scoped_lock lock(mutex_);
  return gate_.resume(policy);
}

EngineStats ShadowedEngine::stats() const {
  EngineStats stats = engine_->stats();
  const std::scoped_lock lock(mutex_);
  stats.shadows = gate_.stats();
  return stats;
}

}  // namespace kvasir::quality
