#include "model/layers/pooled_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace kvasir::model {
namespace {

float activated(HeadActivation activation, float value) {
  const double x = value;
  if (activation == HeadActivation::kTanh) return static_cast<float>(std::tanh(x));
  return static_cast<float>(0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)));
}

// The sizes that keys give of a dense layer are those of its tensor.
Status check_dense_sizes(WeightLoader& loader, const ModelConfig& config, const std::string& name,
                         std::int64_t num_inputs, std::int64_t num_outputs) {
  const std::string prefix = fmt::format("{}.{}_feat_", config.architecture, name);
  KVASIR_CHECKED(loader.metadata().find_int(prefix + "in", num_inputs, num_inputs));
  KVASIR_CHECKED(loader.metadata().find_int(prefix + "out", num_outputs, num_outputs));
  return {};
}

}  // namespace

Status PooledHead::load(WeightLoader& loader, const ModelConfig& config, HeadActivation activation,
                        backend::Backend& backend) {
  backend_ = &backend;
  activation_ = activation;
  embedding_size_ = config.hidden_size;
  for (const char* name : {"dense_2", "dense_3"}) {
    if (!loader.has(fmt::format("{}.weight", name))) continue;
    KVASIR_TRY(PooledLayer layer, load_layer(loader, name, embedding_size_));
    const auto num_outputs = static_cast<std::int32_t>(loader.num_rows(fmt::format("{}.weight", name)));
    KVASIR_CHECKED(check_dense_sizes(loader, config, name, embedding_size_, num_outputs));
    embedding_size_ = num_outputs;
    dense_.push_back(std::move(layer));
  }
  KVASIR_CHECKED(load_classifier(loader, config));
  for (PooledLayer& layer : dense_) KVASIR_CHECKED(make_rows(loader, layer));
  for (auto* layer : {&hidden_, &output_}) {
    if (*layer) KVASIR_CHECKED(make_rows(loader, **layer));
  }
  return {};
}

// Files of BERT keep the classifier's hidden layer as pooler.dense, where models without a classifier have one that
// nothing reads.
Status PooledHead::load_classifier(WeightLoader& loader, const ModelConfig& config) {
  const bool has_output = loader.has("cls.output.weight");
  const std::int64_t num_cls = loader.num_rows("cls.weight");
  if (!has_output && num_cls == 0) return {};
  std::string output = "cls.output";
  if (!has_output && num_cls != config.hidden_size) {
    output = "cls";
  } else if (num_cls > 0 || loader.has("pooler.dense.weight")) {
    KVASIR_TRY(hidden_, load_layer(loader, num_cls > 0 ? "cls" : "pooler.dense", config.hidden_size));
    if (loader.has("cls.norm.weight")) {
      KVASIR_TRY(norm_, load_norm(loader, "cls.norm", backend::NormKind::kLayer, config.hidden_size,
                                  config.norm_eps));
    }
  }
  KVASIR_TRY(output_, load_layer(loader, output, config.hidden_size));
  num_labels_ = static_cast<std::int32_t>(loader.num_rows(output + ".weight"));
  return {};
}

Result<PooledLayer> PooledHead::load_layer(WeightLoader& loader, const std::string& name,
                                           std::int64_t num_inputs) {
  PooledLayer layer;
  const std::int64_t num_outputs = std::max<std::int64_t>(loader.num_rows(name + ".weight"), 1);
  KVASIR_TRY(layer.weight, loader.matrix(name + ".weight", num_outputs, num_inputs));
  KVASIR_TRY(layer.bias, loader.optional_vector(name + ".bias", num_outputs));
  return layer;
}

// Once all matrices are made: they decide what an activation keeps.
Status PooledHead::make_rows(WeightLoader& loader, PooledLayer& layer) const {
  if (loader.is_dry()) return {};
  const auto num_inputs = static_cast<std::int32_t>(layer.weight->row_length);
  KVASIR_TRY(layer.in, backend_->make_activation(1, num_inputs));
  KVASIR_TRY(layer.in_row, backend_->make_rows(1, num_inputs));
  KVASIR_TRY(layer.out_row, backend_->make_rows(1, static_cast<std::int32_t>(layer.weight->num_rows)));
  return {};
}

// A step of one row, so that the sums are those of any matmul.
std::vector<float> PooledHead::product_of(const PooledLayer& layer, std::span<const float> inputs) const {
  constexpr TokenId kNobodysToken = 0;
  const backend::BatchSequence slice{.num_rows = 1, .num_wanted_rows = 1};
  const backend::BatchInput row{
      .token_ids = {&kNobodysToken, 1}, .sequences = {&slice, 1}, .runs_all_layers = false};
  backend_->plan(row, {});
  backend_->write_row(inputs, layer.in_row, 0);
  backend_->norm(layer.in_row, {}, *layer.in);
  const backend::MatmulOp product{.weight = layer.weight.get(),
                                  .bias = layer.bias.empty() ? nullptr : layer.bias.data(),
                                  .out = layer.out_row};
  backend_->matmul(*layer.in, {&product, 1});
  const std::span<const float> outputs = backend_->host_row(layer.out_row, 0);
  return {outputs.begin(), outputs.end()};
}

std::vector<float> PooledHead::embedding_of(std::vector<float> pooled) const {
  for (const PooledLayer& layer : dense_) pooled = product_of(layer, pooled);
  return pooled;
}

std::vector<float> PooledHead::logits_of(std::vector<float> pooled) const {
  CHECK(output_.has_value());
  if (hidden_) {
    pooled = product_of(*hidden_, pooled);
    for (float& value : pooled) value = activated(activation_, value);
  }
  if (norm_.kind != backend::NormKind::kNone) {
    // The output's inputs are as wide; its step has one row, as the step before.
    const backend::Rows& row = output_->in_row;
    backend_->write_row(pooled, row, 0);
    backend_->norm_in_place(row, norm_.op());
    std::ranges::copy(backend_->host_row(row, 0), pooled.begin());
  }
  return product_of(*output_, pooled);
}

}  // namespace kvasir::model
