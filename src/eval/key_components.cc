#include "eval/key_components.h"

#include <optional>
#include <utility>

#include "engine/key_components.h"
#include "engine/loaded_model.h"
#include "engine/policy_reader.h"
#include "learn/key_watch.h"

namespace kvasir::eval {
namespace {

std::vector<kv::KeyStatistics> statistics_of(const LoadedModel& loaded, const learn::KeyWatch& watch) {
  std::vector<kv::KeyStatistics> heads;
  for (std::int32_t g = 0; g < loaded.kv.num_groups(); ++g) {
    if (!loaded.kv.group(g).is_full()) continue;
    std::vector<kv::KeyStatistics> cells = watch.statistics_of(g);
    if (cells.empty()) return {};
    for (kv::KeyStatistics& cell : cells) heads.push_back(std::move(cell));
  }
  return heads;
}

}  // namespace

Result<std::int64_t> measure_key_components(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                            const std::function<void(double)>& progress, const KeepGoing& keep_going) {
  EngineConfig own = config;
  own.kv_calibration = own.kv_key_components = false;  // existing files may be broken, and will be replaced
  own.kv_cache_type = KvCacheType::kF16;
  KVASIR_TRY(LoadedModel loaded, load_model_file(own, {}));
  std::vector<kv::KeyStatistics> heads;
  if (kv::supports(kv::KvFormat::kK2pV2, loaded.kv.full_head_dim())) {
    std::vector<std::optional<kv::KeyTurning>> turnings;
    for (std::int32_t g = 0; g < loaded.kv.num_groups(); ++g) turnings.push_back(key_turning(*loaded.model, g));
    const std::byte* const memory = loaded.kv_memory.data();
    const learn::KeyWatch watch([&](kv::KvCellRef cell, std::span<std::byte> bytes) { loaded.backend->read_cell(memory + cell.offset(), bytes); },
                                std::move(turnings));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      KVASIR_CHECKED(read_with_policy(loaded, texts[i], watch, keep_going));
      progress(static_cast<double>(i + 1) / static_cast<double>(texts.size()));
    }
    heads = statistics_of(loaded, watch);
  }
  KVASIR_CHECKED(keep_key_components(config.model_path, loaded.kv.full_head_dim(), heads));
  return std::ssize(heads);
}

}  // namespace kvasir::eval
