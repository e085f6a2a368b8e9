// The parts that every model here shares: embedding, head and the walk through the layers. Encoders have no head over
// the vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "model/layers/input_embedding.h"
#include "model/layers/norm.h"
#include "model/layers/pooled_head.h"
#include "model/layers/rope.h"
#include "model/model.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

// Base of the architectures: a subclass says how its layers are loaded and run.
class Decoder : public Model {
 public:
  Decoder(ModelConfig config, backend::Backend& backend);
  const ModelConfig& config() const final { return config_; }
  std::int64_t weight_bytes() const final { return weight_bytes_; }
  void forward(const backend::BatchInput& batch) final;
  void forward_layers(const backend::BatchInput& batch, LayerRange layers, backend::Rows hidden) final;
  Logits logits(std::span<const std::int32_t> rows, std::int32_t first_place, const WantedLogits& wanted) final;
  bool scale_logits(std::span<float> logits) final;
  backend::Rows final_hidden(std::int32_t first_row, std::int32_t num_rows) final;
  const PooledHead& pooled_head() const final { return pooled_head_; }
  std::int32_t num_token_types() const final { return embedding_.num_token_types; }
  const backend::RopeTable* rope_of_group(std::int32_t group) const final;

  // Loads all of it, or with a dry loader checks that it could. Errors: kBadFile, also for a tensor that
  // nobody asked for; kMachine (memory).
  Status load(WeightLoader& loader, const WorkspaceLimits& limits);

 protected:
  // Names the layers' tensors, and registers their kinds of RoPE in ropes_. The file's frequencies are in the
  // configuration by then.
  virtual Status load_layers(WeightLoader& loader) = 0;
  // Called once the rows of ws.x are embedded, before the first layer.
  virtual void run_inputs(const LayerRun&) {}
  // One layer, over run.ws.x in place. False when no row is left, and then there is nothing more to do.
  virtual bool run_layer(const LayerRun& run) = 0;

  ModelConfig config_;
  RopeKinds ropes_;
  // What differs outside the layers.
  struct Ends {
    backend::NormKind embedding_norm = backend::NormKind::kNone;
    backend::NormKind output_norm = backend::NormKind::kRms;
    HeadActivation classifier = HeadActivation::kTanh;
  };
  Ends ends_;

 private:
  backend::Backend& backend_;
  Workspace ws_;
  Status load_head(WeightLoader& loader);

  InputEmbedding embedding_;
  Norm output_norm_;
  std::unique_ptr<backend::Matrix> output_;  // null: the model is an encoder
  PooledHead pooled_head_;
  std::int64_t weight_bytes_ = 0;
};

// Architecture::load of a subclass.
template <class Subclass>
Result<std::unique_ptr<Model>> load_decoder(ModelConfig config, WeightLoader& loader,
                                            backend::Backend& backend, const WorkspaceLimits& limits) {
  auto decoder = std::make_unique<Subclass>(std::move(config), backend);
  KVASIR_CHECKED(decoder->load(loader, limits));
  return decoder;
}

}  // namespace kvasir::model
