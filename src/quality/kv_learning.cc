#include "quality/kv_learning.h"

#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "engine/kv_calibration.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "learn/traffic_learner.h"
#include "quality/shadow_sampler.h"

namespace kvasir::quality {
namespace {

kv::SipKey key_of_learning(std::uint64_t seed) {
  if (seed != 0) return {.k0 = seed, .k1 = ~seed};
  std::random_device entropy;
  const auto word = [&] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  return {.k0 = word(), .k1 = word()};
}

}  // namespace

Status save_champion(const std::string& path, const std::string& model_path, const learn::Champion& champion) {
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  KVASIR_TRY(auto known, io::read_kv_calibration(path));
  io::KvCalibration calibration = known && known->model == fingerprint ? *std::move(known) : io::KvCalibration{.model = fingerprint, .costs = {}};
  calibration.forecast = kv_forecast_numbers(*champion.network);
  calibration.learned = {.version = champion.version,
                         .num_rows = static_cast<std::int64_t>(champion.num_rows),
                         .num_sequences = champion.num_sequences,
                         .cost_ratio = champion.cost_ratio};
  return io::write_kv_calibration(path, calibration);
}

Result<std::shared_ptr<const void>> begin_kv_learning(const KvLearningConfig& learning, EngineConfig& config) {
  std::int64_t first_version = 0;
  std::error_code ignored;
  if (std::filesystem::exists(learning.path, ignored)) {
    KVASIR_TRY(const io::KvCalibration known, io::read_kv_forecast(learning.path));
    first_version = known.learned.version;
    config.kv_forecast_path = learning.path;
  }
  learn::TrafficLearnerConfig of_learner{
      .is_shadow = [sampler = ShadowSampler(key_of_learning(learning.seed), learning.shadow_share)](
                       RequestId id) { return sampler.is_shadow(static_cast<std::uint64_t>(id)); },
      .save = [path = learning.path, model = config.model_path](const learn::Champion& champion) { return save_champion(path, model, champion); },
      .warn = learning.warn,
      .first_version = first_version,
      .cpu_share = learning.cpu_share};
  const auto learner = std::make_shared<learn::TrafficLearner>(std::move(of_learner));
  config.kv_learner = learner.get();
  return learner;
}

}  // namespace kvasir::quality
