// The parts that every decoder here shares: embedding, head, RoPE tables and the step's workspace.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/model.h"

namespace kvasir::model {

// Buffers of one step, allocated once for the largest batch.
struct Workspace {
  backend::Rows own_x;     // [rows, hidden]
  backend::Rows x;         // the residual stream of the rows being run: own_x, or the caller's hidden states
  backend::Rows q, k, v;   // [rows, heads * head_dim]
  backend::Rows gate, up;  // [rows, intermediate]
  backend::Rows y;         // [rows, hidden]: a sub-layer's output where it is normalised before the residual
  Logits logits;
  std::unique_ptr<backend::Activation> h;     // normalised hidden states
  std::unique_ptr<backend::Activation> attn;  // attention output
  std::unique_ptr<backend::Activation> ff;    // gated feed-forward
  std::unique_ptr<backend::Activation> head;  // normalised rows that want logits
};

// The file's per-frequency divisors (tensor rope_freqs.weight), all above 0; empty when there are none.
Result<std::vector<float>> load_freq_factors(WeightLoader& loader, const RopeConfig& rope);

// Base of the architectures: a subclass loads its layers and writes run_layer().
class Decoder : public Model {
 public:
  Decoder(ModelConfig config, backend::Backend& backend);
  const ModelConfig& config() const final { return config_; }
  std::int64_t weight_bytes() const final { return weight_bytes_; }
  void forward(const backend::BatchInput& batch) final;
  void forward_layers(const backend::BatchInput& batch, LayerRange layers, backend::Rows hidden) final;
  Logits logits(std::int32_t first_row, std::int32_t num_rows, bool only_greatest) final;
  backend::Rows final_hidden(std::int32_t first_row, std::int32_t num_rows) final;

 protected:
  // Loads embedding, final norm and head, allocates the workspace and checks that no tensor is left over.
  // Call it after the layers have been loaded.
  Status finish_load(WeightLoader& loader, const WorkspaceLimits& limits);

  // Attention into ws_.attn. After the last layer's only the rows that want logits are left, in ws_.x too:
  // false when there are none, and then nothing is left to do.
  bool attend(const backend::AttendOp& op, bool is_last_layer);

  // One layer, over ws_.x in place; backend_.plan() has been called.
  virtual void run_layer(std::int32_t index) = 0;

  // Registers a RoPE kind and returns its index for RopeAndStoreOp::rope_index.
  std::int32_t add_rope(const RopeConfig& rope, kernels::RopeStyle style);

  ModelConfig config_;
  backend::Backend& backend_;
  Workspace ws_;
  float embedding_scale_ = 1.0f;

 private:
  struct Rope {
    std::vector<double> inverse_frequencies;
    kernels::RopeStyle style;
  };
  Status allocate_workspace(const WorkspaceLimits& limits);

  const TensorView* embedding_ = nullptr;
  std::vector<float> output_norm_;
  std::unique_ptr<backend::Matrix> output_;
  std::vector<Rope> ropes_;
  std::vector<backend::RopeTable> rope_tables_;
  std::int64_t weight_bytes_ = 0;
};

}  // namespace kvasir::model
