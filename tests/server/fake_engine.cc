#include "fake_engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "text/testing/synthetic_vocab.h"

namespace kvasir::server {
namespace {

constexpr char kChatMl[] =
    "{% for message in messages %}{% if message.role == 'refuse' %}{{ raise_exception('no') }}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if tools %}tools:{{ tools | length }}\n{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::unique_ptr<text::Tokenizer> make_tokenizer(const std::vector<std::string>& control_tokens) {
  text::VocabData data = text::byte_level_vocab({{"Q", "Q"}});  // a vocabulary must have a merge
  text::add_token(data, "<|im_start|>", text::TokenType::kControl);
  text::add_token(data, "<|im_end|>", text::TokenType::kControl);
  for (const std::string& token : control_tokens) text::add_token(data, token, text::TokenType::kControl);
  data.eos = FakeEngine::kEnd;
  return text::Tokenizer::create(std::move(data)).value();
}

}  // namespace

FakeEngine::FakeEngine(Options options) : options_(std::move(options)) {
  if (options_.has_tokenizer) tokenizer_ = make_tokenizer(options_.control_tokens);
  guides_ = std::make_unique<GuideCompiler>(tokenizer_.get(), std::int64_t{64} << 20);
  if (options_.control_tokens.empty()) {
    for (const char byte : options_.answer) answer_.push_back(static_cast<unsigned char>(byte));
  } else {
    answer_ = tokenizer_->encode(options_.answer, {.parse_special = true, .add_special = false});
  }
  if (options_.has_template) {
    const std::string calls = "{# " + options_.call_mark + " #}";
    template_ = std::make_unique<text::ChatTemplate>(text::ChatTemplate::parse(kChatMl + calls).value());
  }
  info_ = {.name = "fake", .architecture = "llama", .quantization = "F32", .vocab_size = 259};
  info_.hidden_size = info_.embedding_size = 2;
  info_.pooling = Pooling::kLast;
  info_.has_pooling = true;
  info_.max_model_len_tokens = options_.max_model_len_tokens;
  thread_ = std::thread([this] { run(); });
}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Result<std::vector<RequestId>> FakeEngine::submit(std::vector<Submission> submissions) {
  for (const Submission& submission : submissions) {
    if (submission.request.prompt_token_ids.empty())
      return make_error(ErrorKind::kUsage, "prompt: must not be empty", "prompt");
  }
  const std::lock_guard lock(mutex_);
  if (++num_calls_ == options_.throws_at_call) throw std::bad_alloc();
  if (!is_open_for(submissions.front().request))
    return make_error(ErrorKind::kUnavailable, "the server is shutting down");
  const bool is_admitted = submissions.front().request.is_admitted;
  if (!is_admitted && running_.size() + submissions.size() > options_.max_requests)
    return make_error(ErrorKind::kUnavailable, "queue: full");
  std::vector<RequestId> ids;
  for (Submission& submission : submissions) ids.push_back(start(std::move(submission)));
  changed_.notify_all();
  return ids;
}

bool FakeEngine::is_open_for(const Request& first) const {
  return !is_closed_ && (!draining_ || first.is_admitted);
}

void FakeEngine::prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) {
  guides_->prepare(guide, tenant, std::move(stop), std::move(sink));
}

Result<std::vector<RequestId>> FakeEngine::submit_some(std::vector<Submission> submissions) {
  std::size_t room = 0;
  {
    const std::lock_guard lock(mutex_);
    room = options_.max_requests - std::min(options_.max_requests, running_.size());
  }
  submissions.resize(std::clamp<std::size_t>(submissions.size(), 1, std::max<std::size_t>(1, room)));
  return submit(std::move(submissions));
}

std::shared_ptr<void> FakeEngine::keep_open() {
  const std::lock_guard lock(mutex_);
  ++num_kept_open_;
  return {this, [](FakeEngine* engine) {
            const std::lock_guard release(engine->mutex_);
            --engine->num_kept_open_;
            engine->changed_.notify_all();
          }};
}

RequestId FakeEngine::start(Submission submission) {
  auto running = std::make_shared<Running>();
  running->id = RequestId{next_id_++};
  running->ready = std::chrono::steady_clock::now() + options_.prefill;
  for (std::int32_t i = 0; i < submission.request.sampling.n; ++i) {
    running->choices.push_back({});
  }
  last_request_ = submission.request;
  running->request = std::move(submission.request);
  for (Choice& choice : running->choices) {
    if (!tokenizer_) break;
    if (options_.follows_guides && running->request.compiled_guide) choice.matcher.emplace(running->request.compiled_guide);
    choice.text = std::make_unique<text::StreamingDetokenizer>(
        *tokenizer_,
        text::DetokenizerOptions{.render_special = !running->request.sampling.skip_special_tokens,
                                 .rendered_tokens = running->request.sampling.shown_special_tokens});
  }
  running->sink = std::move(submission.sink);
  running_.push_back(running);
  return running->id;
}

void FakeEngine::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  for (const auto& running : running_) {
    if (running->id == id && !std::exchange(running->cancelled, true)) ++num_cancelled_;
  }
  changed_.notify_all();
}

EngineStats FakeEngine::stats() const {
  EngineStats stats;
  stats.num_running = num_running();
  stats.num_generated_tokens = num_generated_;
  stats.steps_by_seconds[2] = 3;
  stats.steps_by_sequences.back() = 3;
  stats.num_stepped_sequences = 900;
  stats.step_seconds_total = 0.012;
  stats.kv_format_bytes = {{"f16", 4096}, {"q8", 0}};
  return stats;
}

void FakeEngine::inspect(EngineSnapshotSink sink) {
  EngineSnapshot snapshot;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& running : running_) {
      snapshot.requests.push_back({.id = running->id,
                                   .client_id = running->request.client_id,
                                   .tenant = running->request.tenant,
                                   .stage = RequestStage::kGenerating});
    }
  }
  snapshot.kv = {{.owner = KvOwner::kSequence, .format = "f16", .bytes = 4096}};
  sink(std::move(snapshot));
}

void FakeEngine::drain(std::int64_t timeout_ms) {
  guides_->close();
  std::unique_lock lock(mutex_);
  draining_ = true;
  const auto idle = [this] { return running_.empty() && (num_kept_open_ == 0 || is_closed_); };
  if (changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), idle)) return;
  is_closed_ = true;
  for (const auto& running : running_) running->cancelled = true;
  changed_.notify_all();
  changed_.wait(lock, idle);
}

std::vector<TokenId> FakeEngine::last_prompt() const { return last_request().prompt_token_ids; }

Request FakeEngine::last_request() const {
  const std::lock_guard lock(mutex_);
  return last_request_;
}

std::int64_t FakeEngine::num_running() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(running_.size());
}

void FakeEngine::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (running_.empty()) {
      changed_.wait(lock);
      continue;
    }
    step_all();
    // Even without a pause the others need a chance to lock.
    changed_.wait_for(lock,
                      std::max<std::chrono::microseconds>(options_.step, std::chrono::microseconds(10)));
  }
}

// Holds no request, and so no sink, once it is back.
void FakeEngine::step_all() {
  const auto batch = running_;
  for (const auto& running : batch) {
    if (step(*running)) continue;
    std::erase(running_, running);
    changed_.notify_all();
  }
}

bool FakeEngine::step(Running& running) {
  if (!running.cancelled && std::chrono::steady_clock::now() < running.ready) return true;
  for (std::size_t choice = 0; choice < running.choices.size(); ++choice) {
    if (running.choices[choice].finished) continue;
    RequestOutput output = next_output(running, choice);
    running.choices[choice].finished = output.finish_reason.has_value();
    const auto is_finished = [](const Choice& c) { return c.finished; };
    output.request_finished = std::ranges::all_of(running.choices, is_finished);
    output.cost = options_.cost;
    output.usage.prompt_tokens = static_cast<std::int32_t>(running.request.prompt_token_ids.size());
    for (const Choice& c : running.choices) output.usage.completion_tokens += c.num_tokens;
    const bool over = output.request_finished;
    running.sink(std::move(output));
    if (over) return false;
  }
  return true;
}

// The answer's next token, or what the guide allows instead.
TokenId FakeEngine::next_token(Choice& choice) const {
  const TokenId wanted = choice.position < answer_.size() ? answer_[choice.position] : kEnd;
  if (!choice.matcher) {
    ++choice.position;
    return wanted;
  }
  grammar::GrammarMatcher& matcher = *choice.matcher;
  if (wanted != kEnd && matcher.accept(wanted)) {
    ++choice.position;
    return wanted;
  }
  if (matcher.is_accepting()) return kEnd;
  grammar::TokenMask mask(static_cast<std::int32_t>(tokenizer_->vocab().num_tokens()));
  matcher.fill(mask);
  const auto take = [&](TokenId token) { return mask.test(token) && matcher.accept(token); };
  constexpr std::string_view kSoonest = "\"}])></{[0123456789";
  for (const char sign : kSoonest) {
    if (take(sign)) return sign;
  }
  for (TokenId token = mask.num_tokens() - 1; token >= 0; --token) {
    if (take(token)) return token;
  }
  return kEnd;
}

RequestOutput FakeEngine::next_output(Running& running, std::size_t index) {
  const SamplingParams& params = running.request.sampling;
  Choice& choice = running.choices[index];
  RequestOutput output;
  output.request_id = running.id;
  output.index = static_cast<std::int32_t>(index);
  if (running.cancelled) {
    output.finish_reason = FinishReason::kCancelled;
    return output;
  }
  if (choice.num_tokens == options_.fail_after_tokens) {
    output.finish_reason = FinishReason::kError;
    output.error = Error{ErrorKind::kInternal, "the fake engine was told to fail"};
    return output;
  }
  if (params.prompt_logprobs && index == 0 && choice.num_tokens == 0) {
    output.prompt_logprobs.emplace_back();
    for (std::size_t i = 1; i < running.request.prompt_token_ids.size(); ++i) {
      output.prompt_logprobs.push_back({{running.request.prompt_token_ids[i], -0.25f, 1}, {}});
    }
  }
  if (running.request.pooling != Pooling::kNone) {
    output.embedding = {running.request.pooling == Pooling::kLast ? -0.5f : 0.5f, 0.25f};
    if (running.request.dimensions > 0) {
      output.embedding.resize(static_cast<std::size_t>(running.request.dimensions));
    }
  }
  if (params.max_tokens == 0) {
    output.finish_reason = FinishReason::kLength;
    return output;
  }
  const TokenId token = next_token(choice);
  const bool at_end = token == kEnd;
  ++choice.num_tokens;
  ++num_generated_;
  output.token_ids.push_back(token);
  if (params.logprobs) add_logprobs(running.request, choice.num_tokens, token, output);
  if (choice.text && !at_end) output.text = choice.text->push(token);
  if (at_end) {
    output.finish_reason = FinishReason::kStop;
    output.stop_token = kEnd;
  } else if (params.max_tokens && choice.num_tokens >= *params.max_tokens) {
    output.finish_reason = FinishReason::kLength;
  }
  if (output.finish_reason && choice.text) output.text += choice.text->flush();
  return output;
}

void FakeEngine::add_logprobs(const Request& request, std::int32_t index, TokenId token,
                              RequestOutput& output) const {
  PositionLogprobs position;
  position.chosen = {token, -0.25f * static_cast<float>(index), 1};
  for (std::int32_t i = 0; i < *request.sampling.logprobs; ++i) {
    position.top.push_back({(token + i) % 256, position.chosen.logprob * static_cast<float>(1 << i), i + 1});
  }
  output.logprobs.push_back(std::move(position));
}

}  // namespace kvasir::server
