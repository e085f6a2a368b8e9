#include "engine/key_components.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "io/key_components_file.h"
#include "io/model_fingerprint.h"

namespace kvasir {
namespace {

std::unexpected<Error> bad_keys(const std::string& path, const std::string& what) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}; kvasir calibrate-kv writes it anew", printable_line(path), what));
}

}  // namespace

std::optional<kv::KeyTurning> key_turning(const model::Model& model, std::int32_t group) {
  const backend::RopeTable* const rope = model.rope_of_group(group);
  if (rope == nullptr) return std::nullopt;
  return kv::KeyTurning{.inverse_frequencies = rope->inverse_frequencies, .turns_halves = rope->style == backend::RopeStyle::kHalves};
}

Status apply_key_components(const std::string& model_path, const model::Model& model, std::int32_t max_tokens, kv::KvCacheConfig& kv) {
  const std::string path = io::key_components_path(model_path);
  KVASIR_TRY(auto file, io::read_key_components(path));
  if (!file) return {};
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model_path));
  if (file->model != fingerprint) return bad_keys(path, "of another model than this file's");
  if (std::ssize(file->heads) != kv.num_full_cells() || file->head_dim != kv.full_head_dim()) {
    return bad_keys(path, fmt::format("{} KV heads of {} numbers, the model has {} of {} without a window", file->heads.size(), file->head_dim,
                                      kv.num_full_cells(), kv.full_head_dim()));
  }
  std::size_t head = 0;
  for (std::int32_t g = 0; g < kv.num_groups(); ++g) {
    kv::LayerGroup& group = kv.groups[static_cast<std::size_t>(g)];
    if (!group.is_full()) continue;
    std::vector<kv::KeyStatistics> cells;
    for (std::int32_t cell = 0; cell < group.cells_per_block; ++cell, ++head) {
      io::HeadKeys& keys = file->heads[head];
      cells.push_back({std::move(keys.mean), std::move(keys.directions), std::move(keys.deviations), std::move(keys.bits)});
      if (!kv::KeyBases::are_whole(cells.back(), group.head_dim)) return bad_keys(path, fmt::format("the numbers of KV head {} are not whole", head));
    }
    const auto turning = key_turning(model, g);
    if (!turning) return bad_keys(path, "layers of this model turn their keys in several ways");
    group.key_bases = std::make_shared<const kv::KeyBases>(cells, group.head_dim, *turning, kv::blocks_for(max_tokens));
  }
  return {};
}

Status keep_key_components(const std::string& model_path, std::int32_t head_dim, std::span<const kv::KeyStatistics> heads) {
  const std::string path = io::key_components_path(model_path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (heads.empty()) return {};
  KVASIR_TRY(std::string fingerprint, io::model_fingerprint(model_path));
  io::KeyComponentsFile file{.model = std::move(fingerprint), .head_dim = head_dim, .heads = {}};
  for (const kv::KeyStatistics& head : heads) file.heads.push_back({head.mean, head.directions, head.deviations, head.bits});
  return io::write_key_components(path, file);
}

}  // namespace kvasir
