#include "server/api/timings_json.h"

namespace kvasir::server::api {

void write_timings(JsonWriter& json, const Usage& usage, const RequestCost& cost) {
  constexpr double kMsPerSecond = 1000.0;
  const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0.0; };
  const std::int32_t prompt = usage.prompt_tokens - usage.cached_tokens, predicted = usage.completion_tokens;
  json.begin_object().member("cache_n", usage.cached_tokens);
  json.member("prompt_n", prompt).member("prompt_ms", cost.prefill_ms);
  json.member("prompt_per_token_ms", ratio(cost.prefill_ms, prompt));
  json.member("prompt_per_second", ratio(prompt * kMsPerSecond, cost.prefill_ms));
  json.member("predicted_n", predicted).member("predicted_ms", cost.decode_ms);
  json.member("predicted_per_token_ms", ratio(cost.decode_ms, predicted));
  json.member("predicted_per_second", ratio(predicted * kMsPerSecond, cost.decode_ms)).end_object();
}

}  // namespace kvasir::server::api
