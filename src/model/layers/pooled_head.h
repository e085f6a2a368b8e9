// What follows the pooling: linear layers of an embedding, or the classifier of a cross-encoder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/config.h"
#include "model/layers/norm.h"
#include "model/weight_loader.h"

namespace kvasir::model {

enum class HeadActivation : std::uint8_t { kTanh, kGeluErf };

struct PooledLayer {
  std::unique_ptr<backend::Matrix> weight;
  std::vector<float> bias;                  // [outputs] or empty
  std::unique_ptr<backend::Activation> in;  // of one row
  backend::Rows in_row, out_row;
};

class PooledHead {
 public:
  // Tensors dense_2 and dense_3 of an embedding. Of a classifier: cls or pooler.dense, whose outputs go through
  // `activation`, cls.norm where the file has it, and cls.output; or cls alone, when it does not have as many
  // outputs as inputs. None of them need be there. Errors: kBadFile, kMachine (memory).
  Status load(WeightLoader& loader, const ModelConfig& config, HeadActivation activation,
              backend::Backend& backend);

  std::int32_t embedding_size() const { return embedding_size_; }
  std::int32_t num_labels() const { return num_labels_; }  // 0: there is no classifier

  // [hidden_size] to [embedding_size].
  std::vector<float> embedding_of(std::vector<float> pooled) const;
  // [hidden_size] to [num_labels]. Requires: num_labels() > 0.
  std::vector<float> logits_of(std::vector<float> pooled) const;

 private:
  Result<PooledLayer> load_layer(WeightLoader& loader, const std::string& name, std::int64_t num_inputs);
  Status load_classifier(WeightLoader& loader, const ModelConfig& config);
  Status make_rows(WeightLoader& loader, PooledLayer& layer) const;
  std::vector<float> product_of(const PooledLayer& layer, std::span<const float> inputs) const;

  backend::Backend* backend_ = nullptr;
  std::vector<PooledLayer> dense_;
  std::optional<PooledLayer> hidden_;  // of the classifier
  HeadActivation activation_ = HeadActivation::kTanh;
  Norm norm_;
  std::optional<PooledLayer> output_;
  std::int32_t embedding_size_ = 0, num_labels_ = 0;
};

}  // namespace kvasir::model
