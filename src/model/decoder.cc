#include "model/decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::model {
namespace {

// Products of a row's logits from which on searching for the greatest beats computing all: measured on heads
// of 28 and 168 million, of which the search made one slower and the other faster by half.
constexpr std::int64_t kLeastSearchedLogitProducts = 64 << 20;

}  // namespace

Result<std::vector<float>> load_freq_factors(WeightLoader& loader, const RopeConfig& rope) {
  KVASIR_TRY(auto factors, loader.optional_vector("rope_freqs.weight", rope.rotary_dim / 2));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(factors[i] > 0.0f)) {
      return make_error(
          ErrorKind::kBadFile,
          fmt::format("tensor rope_freqs.weight: element {} must be above 0, is {}", i, factors[i]));
    }
  }
  return factors;
}

Decoder::Decoder(ModelConfig config, backend::Backend& backend)
    : config_(std::move(config)), backend_(backend) {}

std::int32_t Decoder::add_rope(const RopeConfig& rope, kernels::RopeStyle style) {
  // theta_i = base^(-2i/d), divided by the linear factor and by the file's own per-frequency factors.
  std::vector<double> inverse(static_cast<std::size_t>(rope.rotary_dim / 2));
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / rope.rotary_dim;
    inverse[i] = std::pow(rope.freq_base, exponent);
    if (rope.scaling == RopeScaling::kLinear) inverse[i] /= rope.factor;
    if (!rope.freq_factors.empty()) inverse[i] /= rope.freq_factors[i];
  }
  ropes_.push_back({std::move(inverse), style});
  rope_tables_.clear();
  for (const Rope& r : ropes_) rope_tables_.push_back({r.inverse_frequencies, r.style});
  return static_cast<std::int32_t>(ropes_.size()) - 1;
}

Status Decoder::allocate_workspace(const WorkspaceLimits& limits) {
  const std::int32_t rows = limits.max_rows;
  KVASIR_TRY(ws_.own_x, backend_.make_rows(rows, config_.hidden_size));
  KVASIR_TRY(ws_.y, backend_.make_rows(rows, config_.hidden_size));
  KVASIR_TRY(ws_.q, backend_.make_rows(rows, config_.q_size()));
  KVASIR_TRY(ws_.k, backend_.make_rows(rows, config_.kv_size()));
  KVASIR_TRY(ws_.v, backend_.make_rows(rows, config_.kv_size()));
  KVASIR_TRY(ws_.gate, backend_.make_rows(rows, config_.intermediate_size));
  KVASIR_TRY(ws_.up, backend_.make_rows(rows, config_.intermediate_size));
  const std::int32_t num_tiles = ceil_div(config_.vocab_size, backend::kLogitsPerTile);
  KVASIR_TRY(ws_.logits.rows, backend_.make_rows(limits.max_logit_rows, config_.vocab_size));
  KVASIR_TRY(ws_.logits.tile_maxima, backend_.make_rows(limits.max_logit_rows, num_tiles));
  KVASIR_TRY(ws_.h, backend_.make_activation(rows, config_.hidden_size));
  KVASIR_TRY(ws_.attn, backend_.make_activation(rows, config_.q_size()));
  KVASIR_TRY(ws_.ff, backend_.make_activation(rows, config_.intermediate_size));
  KVASIR_TRY(ws_.head, backend_.make_activation(limits.max_logit_rows, config_.hidden_size));
  return {};
}

Status Decoder::finish_load(WeightLoader& loader, const WorkspaceLimits& limits) {
  KVASIR_TRY(embedding_, loader.view("token_embd.weight", config_.vocab_size, config_.hidden_size));
  KVASIR_TRY(output_norm_, loader.vector("output_norm.weight", config_.hidden_size));
  const char* head = loader.has("output.weight") ? "output.weight" : "token_embd.weight";  // tied when absent
  const bool is_large = std::int64_t{config_.vocab_size} * config_.hidden_size >= kLeastSearchedLogitProducts;
  const auto use = is_large ? backend::MatrixUse::kArgmaxHead : backend::MatrixUse::kLayer;
  KVASIR_TRY(output_, loader.matrix(head, config_.vocab_size, config_.hidden_size, use));
  KVASIR_CHECKED(loader.check_all_used());
  weight_bytes_ = loader.packed_bytes();
  return allocate_workspace(limits);
}

void Decoder::forward(const backend::BatchInput& batch) {
  forward_layers(batch, {0, config_.num_layers}, ws_.own_x);
}

void Decoder::forward_layers(const backend::BatchInput& batch, LayerRange layers, backend::Rows hidden) {
  ws_.x = hidden;
  backend_.plan(batch, rope_tables_);
  if (layers.first == 0) backend_.embed(*embedding_, embedding_scale_, ws_.x);
  for (std::int32_t layer = layers.first; layer < layers.end; ++layer) run_layer(layer);
}

bool Decoder::attend(const backend::AttendOp& op, bool is_last_layer) {
  if (is_last_layer) return backend_.attend_wanted_rows(op, ws_.x, *ws_.attn) > 0;
  backend_.attend(op, *ws_.attn);
  return true;
}

Logits Decoder::logits(std::int32_t first_row, std::int32_t num_rows, bool only_greatest) {
  backend_.head({.x = ws_.x,
                 .norm_weight = output_norm_,
                 .norm_eps = config_.rms_norm_eps,
                 .weight = output_.get(),
                 .logits = ws_.logits.rows,
                 .tile_maxima = ws_.logits.tile_maxima,
                 .argmax_of = only_greatest ? std::optional(config_.num_tokens) : std::nullopt},
                first_row, num_rows, *ws_.head);
  return ws_.logits;
}

backend::Rows Decoder::final_hidden(std::int32_t first_row, std::int32_t num_rows) {
  backend_.norm_rows(ws_.x, output_norm_, config_.rms_norm_eps, first_row, num_rows, ws_.y);
  return ws_.y;
}

}  // namespace kvasir::model
