#include "scripted_engine.h"

#include <algorithm>
#include <utility>

#include "engine/stop_matcher.h"
#include "text/detokenizer.h"
#include "text/testing/synthetic_vocab.h"

namespace kvasir::server {
namespace {

constexpr TokenId kFirstControlToken = 257;  // behind the bytes and "QQ"

std::unique_ptr<text::Tokenizer> tokenizer_with(const std::vector<std::string>& control_tokens, TokenId end) {
  text::VocabData data = text::byte_level_vocab({{"Q", "Q"}});  // a vocabulary must have a merge
  for (const std::string& token : control_tokens) text::add_token(data, token, text::TokenType::kControl);
  data.eos = end;
  return text::Tokenizer::create(std::move(data)).value();
}

// One choice of a request on its way out.
class ScriptedChoice {
 public:
  ScriptedChoice(const text::Tokenizer& tokenizer, const SamplingParams& sampling, std::int32_t index)
      : text_(tokenizer, {.render_special = !sampling.skip_special_tokens,
                          .rendered_tokens = sampling.shown_special_tokens}),
        stops_(sampling.stop, sampling.include_stop_str_in_output),
        sampling_(sampling),
        index_(index) {}

  // False when the choice is over with it.
  bool push(TokenId token, bool is_end, RequestOutput& output) {
    output.index = index_;
    output.token_ids = {token};
    ++num_tokens_;
    if (sampling_.logprobs) output.logprobs.push_back({.chosen = {token, -0.5f, 1}, .top = {}});
    StopMatcher::Piece piece = stops_.push(is_end ? std::string() : text_.push(token));
    output.text = std::move(piece.text);
    if (piece.stop_string) {
      output.stop_string = *piece.stop_string;
      output.finish_reason = FinishReason::kStop;
      return false;
    }
    if (!is_end && num_tokens_ < sampling_.max_tokens.value_or(num_tokens_ + 1)) return true;
    if (is_end) output.stop_token = token;
    output.finish_reason = is_end ? FinishReason::kStop : FinishReason::kLength;
    output.text += stops_.push(text_.flush(), [](std::size_t) { return false; }).text + stops_.flush();
    return false;
  }
  std::int32_t num_tokens() const { return num_tokens_; }

 private:
  text::StreamingDetokenizer text_;
  StopMatcher stops_;
  const SamplingParams& sampling_;
  std::int32_t index_;
  std::int32_t num_tokens_ = 0;
};

}  // namespace

Result<std::unique_ptr<ScriptedEngine>> ScriptedEngine::create(Options options) {
  KVASIR_TRY(text::ChatTemplate parsed, text::ChatTemplate::parse(options.chat_template));
  std::unique_ptr<ScriptedEngine> engine(new ScriptedEngine(std::move(options)));
  engine->template_ = std::make_unique<text::ChatTemplate>(std::move(parsed));
  return engine;
}

ScriptedEngine::ScriptedEngine(Options options) : script_(std::move(options.script)) {
  const auto end = std::ranges::find(options.control_tokens, options.end_token);
  end_token_ = kFirstControlToken + static_cast<TokenId>(end - options.control_tokens.begin());
  tokenizer_ = tokenizer_with(options.control_tokens, end_token_);
  info_ = {.name = "scripted", .architecture = "llama", .quantization = "F32"};
  info_.vocab_size = static_cast<std::int32_t>(tokenizer_->vocab().num_tokens());
  info_.hidden_size = info_.embedding_size = 2;
  info_.context_length_tokens = info_.max_model_len_tokens = options.max_model_len_tokens;
}

void ScriptedEngine::set_script(std::vector<ScriptRule> script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

std::string ScriptedEngine::last_prompt() const {
  const std::lock_guard lock(mutex_);
  return last_prompt_;
}

std::string ScriptedEngine::answer_to(const std::string& prompt) const {
  const auto fits = [&](const ScriptRule& rule) { return prompt.contains(rule.when); };
  const auto found = std::ranges::find_if(script_, fits);
  return found == script_.end() ? std::string() : found->answer;
}

Result<std::vector<RequestId>> ScriptedEngine::submit(std::vector<Submission> submissions) {
  if (is_draining_) return make_error(ErrorKind::kUnavailable, "the server is shutting down");
  std::vector<RequestId> ids;
  for (const Submission& submission : submissions) {
    ids.push_back(RequestId{next_id_++});
    answer(ids.back(), submission.request, submission.sink);
  }
  return ids;
}

Result<std::vector<RequestId>> ScriptedEngine::submit_some(std::vector<Submission> submissions) {
  return submit(std::move(submissions));
}

EngineStats ScriptedEngine::stats() const {
  EngineStats stats;
  stats.num_generated_tokens = num_generated_;
  return stats;
}

void ScriptedEngine::answer(RequestId id, const Request& request, const OutputSink& sink) {
  std::string scripted;
  {
    const std::lock_guard lock(mutex_);
    last_prompt_ = tokenizer_->decode(request.prompt_token_ids, true);
    scripted = answer_to(last_prompt_);
  }
  std::vector<TokenId> tokens = tokenizer_->encode(scripted, {.parse_special = true, .add_special = false});
  tokens.push_back(end_token_);
  Usage usage{.prompt_tokens = static_cast<std::int32_t>(request.prompt_token_ids.size())};
  if (request.sampling.max_tokens == 0 || request.pooling != Pooling::kNone) {
    RequestOutput output{.request_id = id};
    if (request.pooling != Pooling::kNone) output.embedding = {0.6f, 0.8f};
    output.finish_reason = FinishReason::kLength;
    output.usage = usage;
    output.request_finished = true;
    return sink(std::move(output));
  }
  for (std::int32_t index = 0; index < request.sampling.n; ++index) {
    ScriptedChoice choice(*tokenizer_, request.sampling, index);
    bool is_going = true;
    for (std::size_t i = 0; is_going; ++i) {
      RequestOutput output{.request_id = id};
      is_going = choice.push(tokens[i], i + 1 == tokens.size(), output);
      ++usage.completion_tokens;
      ++num_generated_;
      output.usage = usage;
      output.request_finished = !is_going && index + 1 == request.sampling.n;
      sink(std::move(output));
    }
  }
}

}  // namespace kvasir::server
