#include "cli/sampling_options.h"

#include <algorithm>
#include <limits>

#include "cli/engine_options.h"
#include "cli/number_range.h"

namespace kvasir::cli {
namespace {

void add_penalties(CLI::App& verb, SamplingParams& params) {
  verb.add_option("--repetition-penalty", params.repetition_penalty, "Divides logits of seen tokens (1: off)")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--presence-penalty", params.presence_penalty, "Taken off each generated token, once")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--frequency-penalty", params.frequency_penalty, "Taken off per occurrence")
      ->check(finite_number())
      ->capture_default_str();
}

}  // namespace

// The ranges of fractions are the engine's to check: it names field, limit and value.
void add_sampling_options(CLI::App& verb, SamplingOptions& options) {
  SamplingParams& params = options.params;
  params.temperature = 0.7f;
  params.top_p = 0.95f;
  verb.add_option("--max-tokens,-n", options.max_tokens,
                  "Most tokens of an answer (default: " + std::to_string(kDefaultMaxTokens) +
                      ", less where the context ends)")
      ->transform(whole_number(0, kMaxLengthTokens));
  verb.add_option("--temperature,--temp", params.temperature, "0: always the most likely token")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--top-k", params.top_k, "Among the K most likely (0: off)")
      ->transform(whole_number(0, std::numeric_limits<std::int32_t>::max()))
      ->capture_default_str();
  verb.add_option("--top-p", params.top_p, "Among the most likely that make up P (1: off)")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--min-p", params.min_p, "At least P times as likely as the best (0: off)")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--seed", params.seed, "The same seed gives the same answer")
      ->transform(whole_number<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()));
  verb.add_option("--stop", params.stop, "Ends the answer before this text; may be repeated")
      ->take_all()
      ->expected(1);
  verb.add_flag("--ignore-eos", params.ignore_eos, "Go on past the end of the text");
  add_penalties(verb, params);
}

SamplingParams make_sampling_params(const SamplingOptions& options, std::int64_t prompt_tokens,
                                    std::int32_t max_model_len_tokens) {
  SamplingParams params = options.params;
  const std::int64_t room = std::max<std::int64_t>(1, max_model_len_tokens - prompt_tokens);
  params.max_tokens =
      options.max_tokens.value_or(static_cast<std::int32_t>(std::min<std::int64_t>(kDefaultMaxTokens, room)));
  return params;
}

}  // namespace kvasir::cli
