#include "kvasir/sampling_params.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

#include "base/utf8.h"

namespace kvasir {
namespace {

constexpr float kMaxBias = 100.0f;
constexpr std::int32_t kMaxBeams = 64;

std::unexpected<Error> out_of_range(const char* field, const std::string& range, const std::string& value) {
  return make_error(ErrorKind::kUsage, fmt::format("{} must be {}, got {}", field, range, value), field);
}

// NaN is in no range.
Status check_range(const char* field, float value, float min, float max) {
  if (value >= min && value <= max) return {};
  return out_of_range(field, fmt::format("between {} and {}", min, max), fmt::format("{}", value));
}

Status check_range(const char* field, std::int32_t value, std::int32_t min, std::int32_t max) {
  if (value >= min && value <= max) return {};
  return out_of_range(field, fmt::format("between {} and {}", min, max), fmt::format("{}", value));
}

Status check_token(const char* field, TokenId token, std::int32_t vocab_size) {
  if (token >= 0 && token < vocab_size) return {};
  return out_of_range(field, fmt::format("token ids from 0 to {}", vocab_size - 1), fmt::format("{}", token));
}

Status check_distribution(const SamplingParams& params) {
  if (!(params.temperature >= 0.0f && std::isfinite(params.temperature))) {
    return out_of_range("temperature", "finite and 0 or greater", fmt::format("{}", params.temperature));
  }
  if (params.top_k < 0) return out_of_range("top_k", "0 (off) or greater", fmt::format("{}", params.top_k));
  KVASIR_CHECKED(check_range("top_p", params.top_p, 0.0f, 1.0f));
  KVASIR_CHECKED(check_range("min_p", params.min_p, 0.0f, 1.0f));
  if (!(params.repetition_penalty > 0.0f && std::isfinite(params.repetition_penalty))) {
    return out_of_range("repetition_penalty", "finite and above 0",
                        fmt::format("{}", params.repetition_penalty));
  }
  KVASIR_CHECKED(check_range("presence_penalty", params.presence_penalty, -2.0f, 2.0f));
  return check_range("frequency_penalty", params.frequency_penalty, -2.0f, 2.0f);
}

Status check_logit_bias(const SamplingParams& params, std::int32_t vocab_size) {
  const std::size_t count = params.logit_bias.size();
  if (count > static_cast<std::size_t>(kMaxLogitBias)) {
    return out_of_range("logit_bias", fmt::format("at most {} entries", kMaxLogitBias),
                        fmt::format("{}", count));
  }
  for (const auto& [token, bias] : params.logit_bias) {
    KVASIR_CHECKED(check_token("logit_bias", token, vocab_size));
    KVASIR_CHECKED(check_range("logit_bias", bias, -kMaxBias, kMaxBias));
  }
  return {};
}

Status check_stops(const SamplingParams& params, std::int32_t vocab_size) {
  const std::size_t count = params.stop.size();
  if (count > static_cast<std::size_t>(kMaxStopStrings)) {
    return out_of_range("stop", fmt::format("at most {} strings", kMaxStopStrings), fmt::format("{}", count));
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty() || stop.size() > static_cast<std::size_t>(kMaxStopStringBytes)) {
      return out_of_range("stop", fmt::format("strings of 1 to {} bytes", kMaxStopStringBytes),
                          fmt::format("{} bytes", stop.size()));
    }
    if (!is_valid_utf8(stop)) return out_of_range("stop", "valid UTF-8", "other bytes");
  }
  for (const TokenId token : params.stop_token_ids) {
    KVASIR_CHECKED(check_token("stop_token_ids", token, vocab_size));
  }
  for (const TokenId token : params.allowed_token_ids) {
    KVASIR_CHECKED(check_token("allowed_token_ids", token, vocab_size));
  }
  return {};
}

Status check_beams(const SamplingParams& params) {
  KVASIR_CHECKED(check_range("beam_width", params.beam_width, 0, kMaxBeams));
  if (params.beam_width == 0) return {};
  KVASIR_CHECKED(check_range("length_penalty", params.length_penalty, -10.0f, 10.0f));
  KVASIR_CHECKED(check_range("beam_width", params.beam_width, params.n, kMaxBeams));
  if (params.max_tokens && *params.max_tokens == 0) return out_of_range("max_tokens", "1 or greater for beams", "0");
  return {};
}

Status check_lengths(const SamplingParams& params) {
  KVASIR_CHECKED(check_range("n", params.n, 1, kMaxChoices));
  if (params.max_tokens && *params.max_tokens < 0) {
    return out_of_range("max_tokens", "0 or greater", fmt::format("{}", *params.max_tokens));
  }
  if (params.min_tokens < 0)
    return out_of_range("min_tokens", "0 or greater", fmt::format("{}", params.min_tokens));
  if (params.max_tokens && params.min_tokens > *params.max_tokens) {
    return out_of_range("min_tokens", fmt::format("at most max_tokens = {}", *params.max_tokens),
                        fmt::format("{}", params.min_tokens));
  }
  return {};
}

}  // namespace

Status validate(const SamplingParams& params, std::int32_t vocab_size) {
  KVASIR_CHECKED(check_distribution(params));
  KVASIR_CHECKED(check_logit_bias(params, vocab_size));
  KVASIR_CHECKED(check_lengths(params));
  KVASIR_CHECKED(check_stops(params, vocab_size));
  KVASIR_CHECKED(check_beams(params));
  if (params.logprobs) KVASIR_CHECKED(check_range("logprobs", *params.logprobs, 0, kMaxLogprobs));
  if (params.prompt_logprobs) {
    KVASIR_CHECKED(check_range("prompt_logprobs", *params.prompt_logprobs, 0, kMaxLogprobs));
  }
  return {};
}

}  // namespace kvasir
