#include "server/observe/request_slices.h"

#include <fmt/format.h>

#include <array>

namespace kvasir::server::observe {
namespace {

constexpr int kMaxValues = 64;
constexpr std::array<std::int64_t, 6> kTokenBounds = {64, 256, 1024, 4096, 16384, 65536};

std::string bucket_of(std::int64_t num_tokens) {
  for (const std::int64_t bound : kTokenBounds) {
    if (num_tokens <= bound) return fmt::format("le_{}", bound);
  }
  return fmt::format("gt_{}", kTokenBounds.back());
}

}  // namespace

void RequestSlices::count(const AccessRecord& record) {
  const GenerationRecord& generation = *record.generation;
  add("prompt_tokens", bucket_of(generation.usage.prompt_tokens), record);
  add("output_tokens", bucket_of(generation.usage.completion_tokens), record);
  add("cache_hit", generation.usage.cached_tokens > 0 ? "yes" : "no", record);
  add("guided", generation.settings.is_guided ? "yes" : "no", record);
  add("guessed", generation.usage.draft_tokens_accepted > 0 ? "yes" : "no", record);
  add("priority", std::to_string(generation.priority), record);
  add("tenant", record.tenant, record);
  add("model", generation.model, record);
}

void RequestSlices::add(std::string_view kind, std::string value, const AccessRecord& record) {
  Slice slice(kind, std::move(value));
  if (!sums_.contains(slice)) {
    int& num_values = num_values_[slice.first];
    if (num_values == kMaxValues) {
      slice.second = kOthers;
    } else {
      ++num_values;
    }
  }
  Sums& sums = sums_[slice];
  ++sums.num_requests;
  sums.first_token_seconds += record.generation->first_token_ms / 1000.0;
  sums.total_seconds += record.total_ms / 1000.0;
}

}  // namespace kvasir::server::observe
