// Answers of /completion and /infill.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "server/api/answer_format.h"
#include "text/tokenizer.h"

namespace kvasir::server::api {

// One object, or with a list of prompts or several choices a list of them. A stream has an object an event, the last of
// each choice with "stop": true; nothing else ends it.
class LlamaFormat final : public AnswerFormat {
 public:
  struct Options {
    std::string model;
    std::vector<std::int32_t> prompt_tokens;  // how many each prompt has
    std::int32_t choices_per_prompt = 1;
    bool is_list = false;
    bool probs = false;
    bool has_post_sampling_probs = false;
    bool return_tokens = false;
    bool timings_per_token = false;
    std::vector<std::string> response_fields;
    SamplingParams sampling;
    std::int32_t context_tokens = 0;
  };

  // The tokenizer may be null.
  LlamaFormat(Options options, const text::Tokenizer* tokenizer);

  std::string whole(const std::vector<ChoiceResult>& choices, const Usage& usage) override;
  void append_events(std::int32_t choice, const RequestOutput& output, const Usage& usage,
                     http::Events& events) override;
  void append_last_events(const Usage&, http::Events&) override {}
  void append_end(http::Events&) const override {}

 private:
  // A choice that has ended.
  struct End {
    std::int32_t choice = 0;
    std::string_view content;
    const std::vector<TokenId>& tokens;
    std::int32_t num_tokens = 0;
    std::int32_t num_cached = 0;
    FinishReason reason = FinishReason::kStop;
    std::string_view stop_string;
    bool has_new_line = false;
    const std::vector<PositionLogprobs>& logprobs;
    RequestCost cost;
    const KvUsage& kv;
  };
  std::int32_t num_prompt_tokens(std::int32_t choice) const;
  void write_probs(JsonWriter& json, const std::vector<PositionLogprobs>& positions) const;
  void write_settings(JsonWriter& json) const;
  std::string end_object(const End& end) const;

  const Options options_;
  const text::Tokenizer* tokenizer_;
  std::vector<std::int32_t> num_tokens_;  // of each choice of a stream, so far
  std::vector<bool> has_new_line_;        // likewise
};

// Keeps the object's members at these paths, each under its path. Requires: `json` is an object.
std::string with_fields(const std::string& json, const std::vector<std::string>& paths);

}  // namespace kvasir::server::api
