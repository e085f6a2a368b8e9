// Legacy completions: {"object":"text_completion"}, whole and in chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "server/api/openai/answer_json.h"
#include "server/api/openai/logprobs_json.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

class CompletionFormat final : public AnswerFormat {
 public:
  // The prompt that `echo` gives back before the answer.
  struct EchoedPrompt {
    std::string text;
    std::vector<TokenId> token_ids;
  };
  struct Options {
    AnswerHeader header;
    std::int32_t num_prompts = 1;
    std::int32_t choices_per_prompt = 1;
    bool logprobs = false;
    bool prompt_logprobs = false;  // in vLLM's shape
    bool timings = false;
    bool render_special = false;
    std::vector<EchoedPrompt> echo;  // one a prompt, or none at all
  };

  // The tokenizer may be null.
  CompletionFormat(Options options, const text::Tokenizer* tokenizer);

  // Clients that score text take the last entry for the token that they had to ask for (lm-eval drops it).
  bool shows_stop_token() const override { return true; }
  void note_search(std::string_view ended_by) override { search_ended_by_ = ended_by; }
  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage& usage, http::Events& events) override;

 private:
  // One piece of one choice. The whole answer is a single piece.
  struct Piece {
    std::int32_t choice = 0;
    std::string text;
    std::vector<TokenId> token_ids;
    std::vector<PositionLogprobs> logprobs;
    std::optional<FinishReason> finish_reason;
  };
  std::size_t prompt_of(std::int32_t choice) const;
  // Puts the prompt in front.
  void add_echo(Piece& piece, const std::vector<PositionLogprobs>& prompt_logprobs);
  // Opens the choice's object, which the caller closes.
  void write_piece(JsonWriter& json, const Piece& piece);

  const Options options_;
  const text::Tokenizer* tokenizer_;
  std::vector<LegacyLogprobs> logprobs_;                        // by choice
  std::vector<bool> has_begun_;                                 // by choice
  std::vector<std::vector<PositionLogprobs>> prompt_logprobs_;  // by prompt, as a stream brings them
  std::string search_ended_by_;
};

}  // namespace kvasir::server::api
