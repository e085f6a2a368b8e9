// A decoder that turns a ragged batch of tokens into hidden states, and wanted rows of those into logits; or an
// encoder, which has no logits of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/batch_input.h"
#include "io/hf_mapping.h"
#include "io/packed_copy.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "model/config.h"
#include "model/layers/pooled_head.h"
#include "model/weight_footprint.h"
#include "model/weight_loader.h"

namespace kvasir::model {

// Sizes of the workspace that a model allocates once.
struct WorkspaceLimits {
  std::int32_t max_rows = 512;       // tokens of one step
  std::int32_t max_logit_rows = 64;  // places of logits()
  std::int32_t context_tokens = 0;   // that requests may use; 0: the model's own
};

struct Logits {
  backend::Rows rows;         // [rows, vocab_size]
  backend::Rows tile_maxima;  // [rows, ceil(vocab_size / backend::kLogitsPerTile)], NaN where a logit is
};

// Which logits of some rows are wanted; by default all.
struct WantedLogits {
  bool argmax_only = false;  // the greatest logit of a token, as backend::HeadOp::argmax_of says
  std::span<const std::span<const std::uint64_t>> allowed = {};  // beside argmax_only: HeadOp::allowed
  std::span<const std::int32_t> groups = {};                     // HeadOp::groups
};

// Layers [first, end).
struct LayerRange {
  std::int32_t first = 0;
  std::int32_t end = 0;
};

// Not thread-safe: one engine thread drives it.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelConfig& config() const = 0;
  virtual std::int64_t weight_bytes() const = 0;

  // Runs every layer over the batch. The final hidden states of the rows that want logits stay in the
  // workspace until the next forward(). Requires: 1 <= batch.num_rows() <= max_rows.
  virtual void forward(const backend::BatchInput& batch) = 0;

  // The same for some layers alone, over a residual stream that the caller keeps: `hidden`, a row of
  // hidden_size per row of the batch, is read (written anew from the tokens where the range begins with layer
  // 0) and written. After the last layer the rows that want logits come first in it, and logits() reads them
  // there. Bit-equal to forward() when every layer has run over all earlier rows of a sequence before it runs
  // over a later one.
  virtual void forward_layers(const backend::BatchInput& batch, LayerRange layers, backend::Rows hidden) = 0;

  // Logits of rows among those of the last forward pass that want logits. They go to the places from first_place on, of
  // max_logit_rows in all, and stay there until they are written over. Returns all places. Requires: 1 <= rows.size().
  virtual Logits logits(std::span<const std::int32_t> rows, std::int32_t first_place, const WantedLogits& wanted) = 0;

  // A row of logits() is as the head gives it: its greatest logits are the model's greatest, but models may scale
  // and cap them on top. Does that in place, for a row of which more than the greatest is wanted. Returns whether
  // anything changed; then tile maxima are so no longer.
  virtual bool scale_logits(std::span<float> logits) = 0;

  // The same rows as they go into the head: hidden states after the last norm, [num_rows, hidden_size]. Valid
  // until the next call or forward pass. Requires: 1 <= num_rows <= max_rows.
  virtual backend::Rows final_hidden(std::int32_t first_row, std::int32_t num_rows) = 0;

  // What follows the pooling of final_hidden(): the model's layers for embeddings, or its classifier. Between
  // forward passes.
  virtual const PooledHead& pooled_head() const = 0;
  virtual std::int32_t num_token_types() const = 0;
  // How the keys of a layer group turn; null where its layers turn in several ways. Valid as long as the model.
  virtual const backend::RopeTable* rope_of_group(std::int32_t group) const = 0;

  // Adapters can change these: matrices of attention and dense feed-forward layers. They live as long as the model.
  std::span<const NamedMatrix> layer_matrices() const { return layer_matrices_; }
  void set_layer_matrices(std::vector<NamedMatrix> matrices) { layer_matrices_ = std::move(matrices); }

 private:
  std::vector<NamedMatrix> layer_matrices_;
};

// Builds the model that the file's general.architecture names. `source` and `backend` must outlive it.
// With `copy` its packed weights are taken, which must then outlive the model, or they are added to it.
// Errors: kBadFile (unknown architecture, missing or misshapen tensors), kMachine (memory).
Result<std::unique_ptr<Model>> load_model(const io::WeightSource& source, backend::Backend& backend,
                                          const WorkspaceLimits& limits, WeightProgress progress = {},
                                          io::PackedCopy* copy = nullptr);

// Each tensor that load_model() would miss, or find misshapen, or not know. Reads no matrix.
std::vector<Error> tensor_faults(const io::WeightSource& source, backend::Backend& backend);
// What the weights take. Error (kBadFile): the first of those.
Result<WeightFootprint> measure_weights(const io::WeightSource& source, backend::Backend& backend);

// How a folder whose config.json says so becomes what the architectures read; is_bidirectional: its
// use_bidirectional_attention. Error (kBadFile): no architecture has such folders.
Result<const io::HfMapping*> hf_mapping(std::string_view model_type, bool is_bidirectional);

// The name in GGUF files of a model_type that is not supported; itself where none is known.
std::string_view unsupported_architecture(std::string_view model_type);

// A folder's whose weights the architecture reads; null where there is none.
const io::HfMapping* folder_of_architecture(std::string_view architecture);

// The supported architecture that is nearest to one that is not; empty where none is known.
std::string_view nearest_architecture(std::string_view name);

// The configuration alone, layer groups included, without reading any weight.
Result<ModelConfig> load_config(const io::WeightSource& source);

}  // namespace kvasir::model
