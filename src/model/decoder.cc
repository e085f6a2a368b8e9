#include "model/decoder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace kvasir::model {
namespace {

// Products of a row's logits from which on searching for the greatest beats computing all: measured on heads
// of 28 and 168 million, of which the search made one slower and the other faster by half.
constexpr std::int64_t kLeastSearchedLogitProducts = 64 << 20;

}  // namespace

Decoder::Decoder(ModelConfig config, backend::Backend& backend)
    : config_(std::move(config)), backend_(backend) {}

Status Decoder::load(WeightLoader& loader, const WorkspaceLimits& limits) {
  const std::int32_t context = limits.context_tokens > 0 ? limits.context_tokens
                                                         : config_.context_length_tokens;
  KVASIR_CHECKED(load_freq_factors(loader, context, config_));
  KVASIR_CHECKED(load_layers(loader));
  KVASIR_TRY(embedding_, load_input_embedding(loader, config_, ends_.embedding_norm));
  if (ends_.output_norm != backend::NormKind::kNone) {
    KVASIR_TRY(output_norm_, load_norm(loader, "output_norm", ends_.output_norm, config_.hidden_size,
                                       config_.norm_eps));
  }
  if (!config_.is_encoder) KVASIR_CHECKED(load_head(loader));
  KVASIR_CHECKED(pooled_head_.load(loader, config_, ends_.classifier, backend_));
  KVASIR_CHECKED(loader.check_all_used(config_));
  if (loader.is_dry()) return {};
  weight_bytes_ = loader.packed_bytes();
  KVASIR_TRY(ws_, make_workspace(backend_, config_, limits));
  return {};
}

Status Decoder::load_head(WeightLoader& loader) {
  const char* head = loader.has("output.weight") ? "output.weight" : "token_embd.weight";  // tied when absent
  const bool is_large = std::int64_t{config_.vocab_size} * config_.hidden_size >= kLeastSearchedLogitProducts;
  const auto use = is_large ? backend::MatrixUse::kArgmaxHead : backend::MatrixUse::kLayer;
  KVASIR_TRY(output_, loader.matrix(head, config_.vocab_size, config_.hidden_size, use));
  return {};
}

void Decoder::forward(const backend::BatchInput& batch) {
  forward_layers(batch, {0, config_.num_layers}, ws_.own_x);
}

void Decoder::forward_layers(const backend::BatchInput& batch, LayerRange layers, backend::Rows hidden) {
  ws_.x = hidden;
  backend_.plan(batch, ropes_.tables());
  const auto run_of = [this](std::int32_t layer) -> LayerRun {
    return {.op = backend_, .ws = ws_, .config = config_, .layer = layer};
  };
  if (layers.first == 0) {
    run_input_embedding(backend_, config_, embedding_, ws_);
    run_inputs(run_of(0));
  }
  for (std::int32_t layer = layers.first; layer < layers.end; ++layer) {
    if (!run_layer(run_of(layer))) return;
  }
}

Logits Decoder::logits(std::span<const std::int32_t> rows, std::int32_t first_place, const WantedLogits& wanted) {
  CHECK(output_ != nullptr);
  Logits out = ws_.logits;
  out.rows.data = out.rows.row(first_place);
  out.tile_maxima.data = out.tile_maxima.row(first_place);
  backend_.head({.x = ws_.x,
                 .norm = output_norm_.op(),
                 .weight = output_.get(),
                 .logits = out.rows,
                 .tile_maxima = out.tile_maxima,
                 .argmax_of = wanted.argmax_only ? std::optional(config_.num_tokens) : std::nullopt,
                 .allowed = wanted.allowed,
                 .groups = wanted.groups},
                rows, *ws_.head);
  return ws_.logits;
}

bool Decoder::scale_logits(std::span<float> logits) {
  if (config_.logit_scale == 1.0f && config_.final_softcap == 0.0f) return false;
  backend_.scale_and_cap(logits, config_.logit_scale, config_.final_softcap);
  return true;
}

backend::Rows Decoder::final_hidden(std::int32_t first_row, std::int32_t num_rows) {
  backend_.norm_rows(ws_.x, output_norm_.op(), first_row, num_rows, ws_.y);
  return ws_.y;
}

const backend::RopeTable* Decoder::rope_of_group(std::int32_t group) const {
  const std::vector<std::int32_t>& layers = config_.layer_groups[static_cast<std::size_t>(group)].layers;
  const RopeConfig& rope = config_.rope_of(layers.front());
  const bool are_alike = std::ranges::all_of(layers, [&](std::int32_t layer) { return config_.rope_of(layer) == rope; });
  return are_alike ? ropes_.find(rope) : nullptr;
}

}  // namespace kvasir::model
