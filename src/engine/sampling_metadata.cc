#include "engine/sampling_metadata.h"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "base/printable.h"

namespace kvasir {
namespace {

constexpr std::string_view kSamplingPrefix = "general.sampling.";

// A key that this engine reads: what it may be, and where it goes.
struct SamplingKey {
  std::string_view name;
  double min = 0.0, max = 0.0;
  void (*set)(SamplingParams& params, double value);
};

constexpr double kMaxFactor = std::numeric_limits<float>::max();
constexpr SamplingKey kSamplingKeys[] = {
    {"temp", 0.0, kMaxFactor, [](SamplingParams& p, double v) { p.temperature = static_cast<float>(v); }},
    {"top_k", -1.0, std::numeric_limits<std::int32_t>::max(),
     [](SamplingParams& p, double v) { p.top_k = v > 0.0 ? static_cast<std::int32_t>(v) : 0; }},
    {"top_p", std::numeric_limits<float>::min(), 1.0,
     [](SamplingParams& p, double v) { p.top_p = static_cast<float>(v); }},
    {"min_p", 0.0, 1.0, [](SamplingParams& p, double v) { p.min_p = static_cast<float>(v); }},
    {"penalty_repeat", std::numeric_limits<float>::min(), kMaxFactor,
     [](SamplingParams& p, double v) { p.repetition_penalty = static_cast<float>(v); }},
};

// Keys of samplers that do not exist here, with the value at which they are off.
struct MissingSampler {
  std::string_view name;
  double off = 0.0;
};
constexpr MissingSampler kMissingSamplers[] = {{"xtc_probability"}, {"mirostat"}};

std::optional<double> number_of_key(const io::Metadata& metadata, std::string_view name) {
  const auto value = metadata.find_float(std::string(kSamplingPrefix) + std::string(name));
  return value ? *value : std::nullopt;
}

bool is_in_range(const SamplingKey& key, double value) { return value >= key.min && value <= key.max; }

}  // namespace

SamplingParams usual_sampling() {
  SamplingParams params;
  params.temperature = 0.7f;
  params.top_k = 40;
  params.top_p = 0.95f;
  return params;
}

std::optional<SamplingParams> read_sampling(const io::Metadata& metadata) {
  std::optional<SamplingParams> params;
  for (const SamplingKey& key : kSamplingKeys) {
    const std::optional<double> value = number_of_key(metadata, key.name);
    if (!value || !is_in_range(key, *value)) continue;
    if (!params) params = usual_sampling();
    key.set(*params, *value);
  }
  return params;
}

std::vector<std::string> sampling_notices(const io::Metadata& metadata) {
  std::vector<std::string> notices;
  for (const SamplingKey& key : kSamplingKeys) {
    const std::string full = std::string(kSamplingPrefix) + std::string(key.name);
    if (metadata.find(full) == nullptr) continue;
    const std::optional<double> value = number_of_key(metadata, key.name);
    if (value && is_in_range(key, *value)) continue;
    notices.push_back(
        fmt::format("{} is {}: ignored", full, value ? fmt::format("{}", *value) : std::string("no number")));
  }
  for (const MissingSampler& sampler : kMissingSamplers) {
    const std::optional<double> value = number_of_key(metadata, sampler.name);
    if (!value || *value == sampler.off) continue;
    notices.push_back(
        fmt::format("{}{} is {}: there is no such sampler here", kSamplingPrefix, sampler.name, *value));
  }
  return notices;
}

}  // namespace kvasir
