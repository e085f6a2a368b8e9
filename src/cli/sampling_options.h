// Flags that choose the tokens of an answer.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>

#include "kvasir/result.h"
#include "kvasir/sampling_params.h"

namespace kvasir::cli {

struct SamplingOptions {
  SamplingParams params;
  // Which flags were given: the others take what the model advises.
  bool has_temperature = false;
  bool has_top_k = false;
  bool has_top_p = false;
  bool has_min_p = false;
  bool has_repetition_penalty = false;
  std::optional<std::int32_t> max_tokens;  // nothing: kDefaultMaxTokens, or less where the context is full
};

inline constexpr std::int32_t kDefaultMaxTokens = 1024;

void add_sampling_options(CLI::App& verb, SamplingOptions& options);

// Before a model is there: what is valid whatever its vocabulary. Error (kUsage): names the flag.
Status check_sampling(const SamplingOptions& options);

// Gives what no flag has said the value of `defaults`, ModelInfo::default_sampling.
void fill_sampling(SamplingOptions& options, const SamplingParams& defaults);

// For a prompt of `prompt_tokens` on an engine that takes `max_model_len_tokens`.
SamplingParams make_sampling_params(const SamplingOptions& options, std::int64_t prompt_tokens,
                                    std::int32_t max_model_len_tokens);

}  // namespace kvasir::cli
