#include "eval/kv_true_future.h"

#include <algorithm>
#include <utility>

#include "engine/policy_reader.h"

namespace kvasir::eval {

Result<std::unique_ptr<KvTrueFuture>> KvTrueFuture::open(const EngineConfig& config) {
  KVASIR_TRY(LoadedModel loaded, load_model_file(config, {}));
  const bool has_full_layers = std::ranges::any_of(loaded.kv.groups, [](const kv::LayerGroup& group) { return group.is_full(); });
  if (has_full_layers) return std::make_unique<KvTrueFuture>(std::move(loaded));
  return make_error(ErrorKind::kUnmet, "true-future: each layer of this model has a window, so that no policy acts");
}

Status KvTrueFuture::read(std::span<const TokenId> window, const KeepGoing& keep_going) {
  policy_.read(nullptr);
  record_ = std::make_unique<learn::AttentionRecord>();
  KVASIR_CHECKED(read_with_policy(loaded_, window, *record_, keep_going));
  policy_.read(record_.get());
  return {};
}

}  // namespace kvasir::eval
