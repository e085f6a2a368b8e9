#include "cli/model_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/printable.h"
#include "base/units.h"
#include "engine/capacity_plan.h"
#include "engine/model_info.h"
#include "engine/open_model.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

// A model must have room for so much context besides its weights.
constexpr std::int32_t kLeastContextTokens = 1024;

struct Measured {
  ModelInfo info;
  ModelNeed need;
};

Result<Measured> measure(const std::string& model, const EngineConfig& config) {
  KVASIR_TRY(const std::string path, store::resolve_model(model));
  KVASIR_TRY(OpenedModel opened, open_model(path));
  if (!config.quantize.empty()) KVASIR_CHECKED(opened.quantize(config.quantize, 1));
  KVASIR_TRY(const CapacityModel capacity, measure_model(opened, config));
  EngineConfig alone = config;
  alone.reserved_bytes = 0;
  const std::int32_t wanted = config.max_model_len_tokens > 0 ? config.max_model_len_tokens
                                                              : kLeastContextTokens;
  const CapacityRequest request{.context_tokens = std::min(wanted, capacity.config.context_length_tokens),
                                .memory_bytes = config.memory_bytes};
  KVASIR_TRY(const CapacityPlan plan, plan_capacity(alone, capacity, request));
  Measured measured{.info = describe_header(opened.source(), capacity.config),
                    .need = {.least_bytes = plan.budget_bytes, .process_bytes = capacity.program_bytes}};
  measured.info.weight_bytes = capacity.weights.resident_bytes();
  return measured;
}

// Models that do not run, with a warning where they may be left out.
Result<std::vector<ModelNeed>> measure_all(std::vector<ModelPlace>& places, const EngineConfig& config,
                                           Logger& logger) {
  std::vector<ModelNeed> needs;
  for (auto place = places.begin(); place != places.end();) {
    auto measured = measure(place->model, config);
    if (!measured && !place->is_optional) return std::unexpected(measured.error());
    if (!measured) {
      logger.warning("{} is left out: {}", printable_line(place->model), measured.error().message);
      place = places.erase(place);
      continue;
    }
    place->described = std::move(measured->info);
    needs.push_back(measured->need);
    ++place;
  }
  if (places.empty())
    return make_error(ErrorKind::kNotFound, "--model-dir: no model in it runs", "model-dir");
  return needs;
}

}  // namespace

Result<ModelMemory> ModelMemory::share(std::vector<ModelPlace>& places, const EngineConfig& config,
                                       std::int32_t max_loaded, Logger& logger) {
  ModelMemory memory(config);
  if (places.size() == 1) {
    places.front().config = config;
    return memory;
  }
  memory.is_shared_ = true;
  // Guides are the engine's own, and so is their memory.
  const std::int64_t server_bytes = config.reserved_bytes - config.guide_memory_bytes;
  memory.budget_bytes_ = config.memory_bytes - server_bytes;
  KVASIR_TRY(const std::vector<ModelNeed> needs, measure_all(places, config, logger));
  for (const ModelNeed& need : needs) memory.least_bytes_.push_back(need.least_bytes);
  std::ranges::sort(memory.least_bytes_, std::greater());
  KVASIR_CHECKED(memory.choose_num_at_once(max_loaded));
  memory.turns_ = std::make_shared<StepTurn>();
  for (std::size_t i = 0; i < places.size(); ++i) memory.configure(places[i], needs[i], memory.spare_bytes_);
  return memory;
}

Status ModelMemory::choose_num_at_once(std::int32_t max_loaded) {
  // A fifth is for KV beyond the least, so that the last of many does not leave the others without.
  std::int64_t taken_bytes = 0;
  num_at_once_ = 0;
  for (const std::int64_t bytes : least_bytes_) {
    const bool fits = taken_bytes + bytes <= (num_at_once_ == 0 ? budget_bytes_ : budget_bytes_ / 5 * 4);
    if (!fits || (max_loaded > 0 && num_at_once_ == max_loaded)) break;
    taken_bytes += bytes;
    ++num_at_once_;
  }
  if (num_at_once_ == 0) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("memory: the largest model needs {}, and {} are left of {} beside requests",
                                  format_bytes(least_bytes_.front()), format_bytes(budget_bytes_),
                                  format_bytes(config_.memory_bytes)),
                      "memory");
  }
  spare_bytes_ = (budget_bytes_ - taken_bytes) / num_at_once_;
  return {};
}

void ModelMemory::configure(ModelPlace& place, const ModelNeed& need, std::int64_t spare_bytes) const {
  EngineConfig& of_model = place.config = config_;
  of_model.process_bytes = need.process_bytes;
  of_model.guide_memory_bytes = config_.guide_memory_bytes / num_at_once_;
  of_model.reserved_bytes = std::min(of_model.guide_memory_bytes, spare_bytes);
  of_model.memory_bytes = need.least_bytes + spare_bytes;
  of_model.step_turn = turns_;
}

Status ModelMemory::fit(ModelPlace& place) {
  KVASIR_TRY(Measured measured, measure(place.model, config_));
  place.described = std::move(measured.info);
  const ModelNeed& need = measured.need;
  const std::int64_t all_bytes = is_shared_ ? budget_bytes_ : config_.memory_bytes - config_.reserved_bytes;
  // Beside it are the largest others that fit with it.
  const auto num_others = std::min(least_bytes_.size(), static_cast<std::size_t>(num_at_once_ - 1));
  const std::int64_t others_bytes = std::accumulate(
      least_bytes_.begin(), least_bytes_.begin() + static_cast<std::ptrdiff_t>(num_others),
      static_cast<std::int64_t>(num_others) * spare_bytes_);
  const std::int64_t room_bytes = all_bytes - others_bytes;
  if (need.least_bytes > room_bytes) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("memory: {} needs {}, and it may have {} of {}",
                                  printable_line(place.model), format_bytes(need.least_bytes),
                                  format_bytes(room_bytes), format_bytes(config_.memory_bytes)));
  }
  if (!is_shared_) {
    place.config = config_;
    return {};
  }
  configure(place, need, std::min(spare_bytes_, room_bytes - need.least_bytes));
  least_bytes_.insert(std::ranges::lower_bound(least_bytes_, need.least_bytes, std::greater()),
                      need.least_bytes);
  return {};
}

}  // namespace kvasir::cli
