#include "python/engine_settings.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/units.h"
#include "engine/kv_params.h"

namespace kvasir::python {
namespace {

// In its own process no request has to be refused: requests that do not run yet wait. The most that the
// engine takes.
constexpr std::int32_t kMaxQueuedRequests = 1 << 20;

template <auto Member>
void read_int32(std::string_view name, nb::handle value, EngineConfig& config) {
  config.*Member = int32_of(name, value);
}

template <auto Member>
void read_truth(std::string_view name, nb::handle value, EngineConfig& config) {
  config.*Member = truth_of(name, value);
}

template <auto Member>
void read_text(std::string_view name, nb::handle value, EngineConfig& config) {
  config.*Member = text_of(name, value);
}

// A number of bytes, or a text such as "8GiB".
template <auto Member>
void read_bytes(std::string_view name, nb::handle value, EngineConfig& config) {
  if (PyUnicode_Check(value.ptr()) == 0) {
    config.*Member = whole_number_of(name, value);
    return;
  }
  const auto bytes = parse_bytes(text_of(name, value));
  if (!bytes) raise_usage(fmt::format("{}: {}", name, bytes.error().message), std::string(name));
  config.*Member = *bytes;
}

void read_cache_tokens(std::string_view name, nb::handle value, EngineConfig& config) {
  config.kv_cache_tokens = whole_number_of(name, value);
}

void read_max_step(std::string_view name, nb::handle value, EngineConfig& config) {
  config.max_step_ms = number_of(name, value);
  if (!(config.max_step_ms >= 0.0)) {
    raise_usage(fmt::format("{}: must be 0 or greater, got {}", name, config.max_step_ms), std::string(name));
  }
}

void read_kv_type(std::string_view name, nb::handle value, EngineConfig& config) {
  const std::string type = text_of(name, value);
  const std::optional<KvCacheType> known = kv_cache_type_named(type);
  if (!known) raise_usage(fmt::format("{}: must be q12, f16 or f32, got '{}'", name, type), std::string(name));
  config.kv_cache_type = *known;
}

void read_public_prefixes(std::string_view name, nb::handle value, EngineConfig& config) {
  config.public_prefixes = texts_of(name, value);
}

using Config = EngineConfig;
constexpr auto kFields = std::to_array<Field<EngineConfig>>({
    {"threads", read_int32<&Config::num_threads>},
    {"ctx", read_int32<&Config::max_model_len_tokens>},
    {"memory", read_bytes<&Config::memory_bytes>},
    {"max_num_seqs", read_int32<&Config::max_num_seqs>},
    {"max_num_batched_tokens", read_int32<&Config::max_num_batched_tokens>},
    {"max_step_ms", read_max_step},
    {"kv_cache_tokens", read_cache_tokens},
    {"kv_type", read_kv_type},
    {"fast", read_truth<&Config::fast>},
    {"prefix_cache", read_truth<&Config::prefix_cache>},
    {"public_prefixes", read_public_prefixes},
    {"prefill_only", read_truth<&Config::prefill_only>},
    {"isa", read_text<&Config::isa>},
    {"chat_template", read_text<&Config::chat_template>},
});

}  // namespace

EngineConfig read_settings(const nb::dict& settings) {
  EngineConfig config;
  config.max_queued_requests = kMaxQueuedRequests;
  read_fields<EngineConfig>("setting", settings, kFields, config);
  return config;
}

std::vector<std::string_view> setting_names() { return names_of<EngineConfig>(kFields); }

}  // namespace kvasir::python
