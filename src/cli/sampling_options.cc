#include "cli/sampling_options.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "cli/engine_options.h"
#include "cli/number_range.h"

namespace kvasir::cli {
namespace {

// A flag of which the model may have a default of its own.
template <class T>
CLI::Option* add_model_option(CLI::App& verb, const std::string& name, T& value, bool& is_given,
                              const std::string& help) {
  return verb.add_option(name, value, help)->each([&is_given](const std::string&) { is_given = true; });
}

void add_penalties(CLI::App& verb, SamplingOptions& options) {
  SamplingParams& params = options.params;
  add_model_option(verb, "--repetition-penalty", params.repetition_penalty, options.has_repetition_penalty,
                   "Divides the logits of tokens that occurred (1: off; default: the model's, else 1)")
      ->check(finite_number());
  verb.add_option("--presence-penalty", params.presence_penalty, "Subtracted from the logit of each token that was generated")
      ->check(finite_number())
      ->capture_default_str();
  verb.add_option("--frequency-penalty", params.frequency_penalty, "Subtracted from a token's logit for each time it was generated")
      ->check(finite_number())
      ->capture_default_str();
}

constexpr std::string_view kRandomSeed = "-1";  // as in llama.cpp

void add_seed_option(CLI::App& verb, SamplingParams& params) {
  const CLI::Validator number = whole_number<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max());
  const auto rewrite = [number](std::string& text) {
    return text == kRandomSeed ? std::string() : number(text);
  };
  const auto set_seed = [&params](const std::string& text) {
    params.seed.reset();
    if (text != kRandomSeed) params.seed = std::stoull(text);
  };
  verb.add_option_function<std::string>("--seed", set_seed,
                                        "The same seed gives the same answer (-1: a random one)")
      ->transform(CLI::Validator(rewrite, number.get_description()))
      ->type_name("UINT");
}

}  // namespace

// The ranges of fractions are the engine's: check_sampling() asks it.
void add_sampling_options(CLI::App& verb, SamplingOptions& options) {
  SamplingParams& params = options.params;
  verb.add_option("--max-tokens,-n", options.max_tokens,
                  "Most tokens of the answer (default: " + std::to_string(kDefaultMaxTokens) +
                      ", less where the context ends; -1: all that it has left)")
      ->transform(whole_number(-1, kMaxLengthTokens));
  add_model_option(verb, "--temperature,--temp", params.temperature, options.has_temperature,
                   "Sampling temperature; 0: always the most likely token (default: the model's, else 0.7)")
      ->check(finite_number());
  add_model_option(verb, "--top-k", params.top_k, options.has_top_k,
                   "Sample from the K most likely tokens (0 or -1: off; default: the model's, else 40)")
      ->transform(whole_number(-1, std::numeric_limits<std::int32_t>::max()));
  add_model_option(verb, "--top-p", params.top_p, options.has_top_p,
                   "Nucleus sampling: from the most likely tokens whose probabilities sum to P (1: off; default: the model's, else "
                   "0.95)")
      ->check(finite_number());
  add_model_option(verb, "--min-p", params.min_p, options.has_min_p,
                   "Drop tokens less than P times as likely as the most likely one (0: off; default: the model's, else 0)")
      ->check(finite_number());
  add_seed_option(verb, params);
  verb.add_option("--stop", params.stop, "Stop sequence: the answer ends before it; may be repeated")
      ->take_all()
      ->expected(1);
  verb.add_flag("--ignore-eos", params.ignore_eos, "Ignore end-of-sequence tokens and go on");
  add_penalties(verb, options);
}

Status check_sampling(const SamplingOptions& options) {
  SamplingParams params = options.params;
  params.top_k = std::max(params.top_k, 0);
  Status valid = validate(params, std::numeric_limits<std::int32_t>::max());
  if (valid) return valid;
  Error error = std::move(valid).error();
  std::string flag = "--" + error.param;
  std::ranges::replace(flag, '_', '-');
  if (error.message.starts_with(error.param)) error.message.replace(0, error.param.size(), flag);
  return std::unexpected(std::move(error));
}

void fill_sampling(SamplingOptions& options, const SamplingParams& defaults) {
  SamplingParams& params = options.params;
  if (!options.has_temperature) params.temperature = defaults.temperature;
  if (!options.has_top_k) params.top_k = defaults.top_k;
  if (!options.has_top_p) params.top_p = defaults.top_p;
  if (!options.has_min_p) params.min_p = defaults.min_p;
  if (!options.has_repetition_penalty) params.repetition_penalty = defaults.repetition_penalty;
}

SamplingParams make_sampling_params(const SamplingOptions& options, std::int64_t prompt_tokens,
                                    std::int32_t max_model_len_tokens) {
  SamplingParams params = options.params;
  const std::int64_t room = std::max<std::int64_t>(1, max_model_len_tokens - prompt_tokens);
  params.max_tokens = options.max_tokens.value_or(
      static_cast<std::int32_t>(std::min<std::int64_t>(kDefaultMaxTokens, room)));
  if (options.max_tokens == -1 || *params.max_tokens > room) params.max_tokens = static_cast<std::int32_t>(room);
  params.top_k = std::max(params.top_k, 0);
  return params;
}

}  // namespace kvasir::cli
