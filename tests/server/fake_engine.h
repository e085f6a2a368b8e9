// An engine without a model, for the server's tests: it answers every prompt with the same text.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/guide_compiler.h"
#include "grammar/match/matcher.h"
#include "kvasir/engine.h"
#include "text/chat_template.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace kvasir::server {

// The tokens are bytes (id = byte), then "QQ", <|im_start|> and <|im_end|>; the template is ChatML. Each step
// gives every choice of every request one token of the answer, after which it ends with <|im_end|>. Guides are
// compiled, but bind no answer unless it is said: then a token that may not come gives way to one that may, which ends
// texts and values soon. A choice's token has log probability -(1 + index in the answer) / 4, alternatives half of the one before.
class FakeEngine final : public Engine {
 public:
  struct Options {
    std::string answer = "Hello, world!";
    std::vector<std::string> control_tokens;  // beside the two; in the answer they are one token each
    std::chrono::milliseconds step{0};
    std::chrono::milliseconds prefill{0};
    std::int32_t max_model_len_tokens = 256;
    std::size_t max_requests = 8;
    std::int32_t fail_after_tokens = -1;  // then the request fails
    std::int64_t throws_at_call = 0;      // of submit(), the first is 1; 0: never
    bool has_template = true;
    std::string call_mark;  // by which its template shows in which form it calls tools; empty: in none
    bool has_tokenizer = true;
    bool follows_guides = false;
    RequestCost cost;  // of every request, from its first output on
  };
  static constexpr TokenId kStart = 257;
  static constexpr TokenId kEnd = 258;

  FakeEngine() : FakeEngine(Options{}) {}
  explicit FakeEngine(Options options);
  ~FakeEngine() override;

  const ModelInfo& model_info() const override { return info_; }
  const text::Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  const text::ChatTemplate* chat_template() const override { return template_.get(); }
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override;
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override;
  std::shared_ptr<void> keep_open() override;
  void prepare_guide(const Guide& guide, std::string_view tenant, std::stop_token stop, GuideSink sink) override;
  void cancel(RequestId id) override;
  EngineStats stats() const override;
  void inspect(EngineSnapshotSink sink) override;
  void drain(std::int64_t timeout_ms) override;

  std::vector<TokenId> last_prompt() const;
  Request last_request() const;
  std::int64_t num_running() const;
  std::int64_t num_cancelled() const { return num_cancelled_; }

 private:
  struct Choice {
    std::int32_t num_tokens = 0;
    std::size_t position = 0;  // in the answer
    std::optional<grammar::GrammarMatcher> matcher;
    bool finished = false;
    std::unique_ptr<text::StreamingDetokenizer> text;
  };
  struct Running {
    RequestId id{};
    Request request;
    OutputSink sink;
    std::chrono::steady_clock::time_point ready;
    std::vector<Choice> choices;
    bool cancelled = false;
  };

  bool is_open_for(const Request& first) const;  // with mutex_ held
  RequestId start(Submission submission);        // likewise
  void run();
  void step_all();
  bool step(Running& running);  // false: it is over
  RequestOutput next_output(Running& running, std::size_t choice);
  TokenId next_token(Choice& choice) const;
  void add_logprobs(const Request& request, std::int32_t index, TokenId token, RequestOutput& output) const;

  Options options_;
  ModelInfo info_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::vector<TokenId> answer_;
  std::unique_ptr<text::ChatTemplate> template_;
  std::unique_ptr<GuideCompiler> guides_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Running>> running_;  // guarded
  Request last_request_;                          // guarded
  std::uint64_t next_id_ = 1;                     // guarded
  std::int64_t num_kept_open_ = 0;                // guarded
  std::int64_t num_calls_ = 0;                    // guarded; of submit()
  bool draining_ = false;                         // guarded
  bool is_closed_ = false;                        // guarded
  bool stopping_ = false;                         // guarded
  std::atomic<std::int64_t> num_cancelled_{0};
  std::atomic<std::int64_t> num_generated_{0};
  std::thread thread_;
};

}  // namespace kvasir::server
