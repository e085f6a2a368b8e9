// An engine without a model that answers by a script, through a real chat template and tokenizer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kvasir/engine.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir::server {

// A rule of a script: the answer to prompts that contain a text.
struct ScriptRule {
  std::string when;  // in the prompt as the template wrote it; empty: any prompt
  std::string answer;
};

// The tokens are bytes (id = byte), then "QQ" and the control tokens in their order. The first rule that fits
// a prompt gives the answer, a token at a time, and the end token after it; one that nothing fits is empty.
// Stop strings and max_tokens end it sooner.
//
// Thread safety: every member may be called from any thread. Sinks are called before submit() returns, so
// they must not wait for it.
class ScriptedEngine final : public Engine {
 public:
  struct Options {
    std::string chat_template;  // its source
    std::vector<std::string> control_tokens = {"<|im_start|>", "<|im_end|>"};
    std::string end_token = "<|im_end|>";  // one of them
    std::int32_t max_model_len_tokens = 1 << 20;
    std::vector<ScriptRule> script;
  };

  // Errors: as text::ChatTemplate::parse's.
  static Result<std::unique_ptr<ScriptedEngine>> create(Options options);

  void set_script(std::vector<ScriptRule> script);
  // The prompt that came last, with its control tokens as text.
  std::string last_prompt() const;

  const ModelInfo& model_info() const override { return info_; }
  const text::Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  const text::ChatTemplate* chat_template() const override { return template_.get(); }
  using Engine::submit;
  Result<std::vector<RequestId>> submit(std::vector<Submission> submissions) override;
  Result<std::vector<RequestId>> submit_some(std::vector<Submission> submissions) override;
  std::shared_ptr<void> keep_open() override { return nullptr; }
  void cancel(RequestId) override {}  // every request is over by then
  EngineStats stats() const override;
  void inspect(EngineSnapshotSink sink) override { sink({}); }
  void drain(std::int64_t) override { is_draining_ = true; }

 private:
  explicit ScriptedEngine(Options options);
  std::string answer_to(const std::string& prompt) const;  // with mutex_ held
  void answer(RequestId id, const Request& request, const OutputSink& sink);

  ModelInfo info_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<text::ChatTemplate> template_;
  TokenId end_token_ = kNoToken;
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<std::int64_t> num_generated_{0};
  std::atomic<bool> is_draining_{false};

  mutable std::mutex mutex_;
  std::vector<ScriptRule> script_;  // guarded
  std::string last_prompt_;         // guarded
};

}  // namespace kvasir::server
