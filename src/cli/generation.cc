#include "cli/generation.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace kvasir::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalInterval{20};  // how late Ctrl-C may be noticed
constexpr std::chrono::milliseconds kLookInterval{100};   // how often it is asked how far a prompt is

struct PromptState {
  std::int32_t computed_tokens = 0;
  std::int32_t prompt_tokens = 0;
};

// Where the engine thread leaves outputs for the caller's.
class Mailbox {
 public:
  void push(RequestOutput output) {
    {
      const std::lock_guard lock(mutex_);
      outputs_.push_back({Clock::now(), std::move(output)});
    }
    arrived_.notify_one();
  }

  void push(PromptState state) {
    const std::lock_guard lock(mutex_);
    prompt_state_ = state;
  }

  struct Timed {
    Clock::time_point time;
    RequestOutput output;
  };
  // Takes the outputs that have come, possibly none after `patience`.
  std::vector<Timed> take(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    arrived_.wait_for(lock, patience, [this] { return !outputs_.empty(); });
    return std::exchange(outputs_, {});
  }
  std::optional<PromptState> take_prompt_state() {
    const std::lock_guard lock(mutex_);
    return std::exchange(prompt_state_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Timed> outputs_;
  std::optional<PromptState> prompt_state_;
};

// Asks the engine now and then how far a request's prompt is.
class PromptWatch {
 public:
  PromptWatch(Engine& engine, RequestId id, std::int32_t prompt_tokens, std::shared_ptr<Mailbox> mailbox)
      : engine_(engine),
        id_(id),
        mailbox_(std::move(mailbox)),
        state_{.prompt_tokens = prompt_tokens},
        last_look_(Clock::now()) {}

  void tick(const PromptSink& on_prompt) {
    if (const auto state = mailbox_->take_prompt_state()) state_ = *state;
    on_prompt(state_.computed_tokens, state_.prompt_tokens);
    if (Clock::now() - last_look_ < kLookInterval) return;
    last_look_ = Clock::now();
    engine_.inspect([id = id_, mailbox = mailbox_](const EngineSnapshot& snapshot) {
      for (const RequestActivity& request : snapshot.requests) {
        if (request.id == id)
          mailbox->push(PromptState{request.num_computed_tokens, request.num_prompt_tokens});
      }
    });
  }

 private:
  Engine& engine_;
  const RequestId id_;
  const std::shared_ptr<Mailbox> mailbox_;
  PromptState state_;
  Clock::time_point last_look_;
};

class Recorder {
 public:
  explicit Recorder(Clock::time_point begin) : begin_(begin) {}

  void record(Clock::time_point time, RequestOutput& output) {
    if (!output.token_ids.empty()) {
      if (generation_.token_ids.empty()) first_token_ = time;
      last_token_ = time;
    }
    generation_.token_ids.insert(generation_.token_ids.end(), output.token_ids.begin(),
                                 output.token_ids.end());
    generation_.text += output.text;
    generation_.usage = output.usage;
    if (output.finish_reason) {
      generation_.finish_reason = *output.finish_reason;
      generation_.stop_string = std::move(output.stop_string);
      generation_.stop_token = output.stop_token;
    }
    if (output.error) error_ = std::move(output.error);
  }

  Result<Generation> finish() {
    if (error_) return std::unexpected(std::move(*error_));
    const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
    const std::size_t num_tokens = generation_.token_ids.size();
    if (num_tokens > 0) {
      const double ttft = seconds(first_token_ - begin_);
      generation_.ttft_ms = 1e3 * ttft;
      const int computed = generation_.usage.prompt_tokens - generation_.usage.cached_tokens;
      generation_.prefill_tokens_per_s = computed / ttft;
    }
    if (num_tokens > 1) {
      generation_.decode_tokens_per_s =
          static_cast<double>(num_tokens - 1) / seconds(last_token_ - first_token_);
    }
    return std::move(generation_);
  }

 private:
  const Clock::time_point begin_;
  Clock::time_point first_token_;
  Clock::time_point last_token_;
  Generation generation_;
  std::optional<Error> error_;
};

}  // namespace

std::string adapter_of(const Engine& engine) {
  const AdapterNames adapters = engine.adapters();
  return adapters->empty() ? std::string() : adapters->front();
}

Result<Generation> generate(Engine& engine, Request request, BlockedSignals& signals, const TextSink& on_text,
                            const PromptSink& on_prompt) {
  auto mailbox = std::make_shared<Mailbox>();
  Recorder recorder(Clock::now());
  const auto prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size());
  KVASIR_TRY(const RequestId id, engine.submit(std::move(request), [mailbox](RequestOutput output) {
    mailbox->push(std::move(output));
  }));
  PromptWatch watch(engine, id, prompt_tokens, mailbox);
  bool has_begun = false;
  for (bool finished = false; !finished;) {
    for (Mailbox::Timed& timed : mailbox->take(kSignalInterval)) {
      recorder.record(timed.time, timed.output);
      if (!timed.output.text.empty()) on_text(timed.output.text);
      has_begun |= !timed.output.token_ids.empty();
      finished = timed.output.request_finished;
    }
    if (on_prompt && !has_begun && !finished) watch.tick(on_prompt);
    if (signals.take()) engine.cancel(id);
  }
  return recorder.finish();
}

}  // namespace kvasir::cli
