#include "server/api/logit_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

#include "server/api/field.h"

namespace kvasir::server::api {
namespace {

constexpr double kMostBias = 100.0;

struct Target {
  SamplingParams& sampling;
  std::vector<TextBias>* texts;
};

// A bias beyond the ends is the nearest that means something.
ApiResult<float> bias_of(const FieldInput& field) {
  const bool is_never = field.json.is_bool() && !field.json.get_bool().value();
  if (is_never) return static_cast<float>(-kMostBias);
  KVASIR_TRY(const double number, number_of(field));
  const double nearest = std::clamp(number, -kMostBias, kMostBias);
  if (nearest != number) field.warn(fmt::format(": {} was taken as {}", number, nearest));
  return static_cast<float>(nearest);
}

// "05" would be 5 given twice.
std::optional<TokenId> id_of(std::string_view key) {
  TokenId token = kNoToken;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
  const bool is_id = error == std::errc() && end == key.data() + key.size() && token >= 0;
  if (!is_id || key != fmt::format_int(token).c_str()) return std::nullopt;
  return token;
}

ApiStatus add_bias(const FieldInput& field, std::string_view key, float bias, Target target) {
  if (const auto token = id_of(key)) {
    target.sampling.logit_bias.emplace_back(*token, bias);
    return {};
  }
  if (target.texts == nullptr) return bad_request(field.name + ": keys must be token ids", field.name);
  target.texts->emplace_back(std::string(key), bias);
  return {};
}

ApiStatus read_object(const FieldInput& field, JsonObject biases, Target target) {
  for (const auto [key, json] : biases) {
    if (json.is_null()) continue;
    KVASIR_TRY(const float bias, bias_of(field.at(key, json)));
    KVASIR_CHECKED(add_bias(field, key, bias, target));
  }
  return {};
}

ApiStatus read_pair(const FieldInput& field, const FieldInput& all, Target target) {
  KVASIR_TRY(const JsonArray pair, array_of(field));
  if (pair.size() != 2) return bad_request(field.name + " must be a pair of a token and its bias", field.name);
  const JsonElement token = pair.at(0);
  KVASIR_TRY(const float bias, bias_of(field.at(1, pair.at(1))));
  if (token.is_string()) return add_bias(all, token.get_string().value(), bias, target);
  FieldInput id = field.at(0, token);
  id.range = {0, std::numeric_limits<TokenId>::max()};
  KVASIR_TRY(const std::int64_t number, integer_of(id));
  target.sampling.logit_bias.emplace_back(static_cast<TokenId>(number), bias);
  return {};
}

}  // namespace

ApiStatus read_token_biases(const FieldInput& field, SamplingParams& sampling, std::vector<TextBias>* texts) {
  const Target target{sampling, texts};
  const Limit& limit = field.limits.logit_bias;
  if (!field.json.is_array()) {
    KVASIR_TRY(const JsonObject biases, object_of(field));
    const auto count = static_cast<std::int64_t>(biases.size());
    if (count > limit.max) return std::unexpected(beyond(limit, count, field.name));
    return read_object(field, biases, target);
  }
  const JsonArray pairs = field.json.get_array().value();
  const auto count = static_cast<std::int64_t>(pairs.size());
  if (count > limit.max) return std::unexpected(beyond(limit, count, field.name));
  std::size_t index = 0;
  for (const JsonElement json : pairs) KVASIR_CHECKED(read_pair(field.at(index++, json), field, target));
  return {};
}

}  // namespace kvasir::server::api
