// Flags that choose the tokens of an answer.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>

#include "kvasir/sampling_params.h"

namespace kvasir::cli {

struct SamplingOptions {
  SamplingParams params;
  std::optional<std::int32_t> max_tokens;  // nothing: kDefaultMaxTokens, or less where the context is full
};

inline constexpr std::int32_t kDefaultMaxTokens = 1024;

// The defaults are for a person at a terminal, who wants coherent text more than the whole distribution.
void add_sampling_options(CLI::App& verb, SamplingOptions& options);

// For a prompt of `prompt_tokens` on an engine that takes `max_model_len_tokens`.
SamplingParams make_sampling_params(const SamplingOptions& options, std::int64_t prompt_tokens,
                                    std::int32_t max_model_len_tokens);

}  // namespace kvasir::cli
