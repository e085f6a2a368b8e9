// A token's first hidden state: its row of the embedding, and what some families add to it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/layers/norm.h"
#include "model/weight_loader.h"
#include "model/workspace.h"

namespace kvasir::model {

struct InputEmbedding {
  const TensorView* tokens = nullptr;  // [vocab_size, hidden_size], read where it lies
  std::vector<float> positions;        // [positions, hidden_size] from that of the first token on, or empty
  std::vector<float> types;            // [num_token_types, hidden_size] or empty
  std::int32_t num_token_types = 1;
  Norm norm;  // of the sum; of some encoders
};

// Tensors token_embd and, as the configuration says, position_embd; token_types of encoders where the file has it;
// token_embd_norm where `norm` is not kNone. Errors: kBadFile.
Result<InputEmbedding> load_input_embedding(WeightLoader& loader, const ModelConfig& config,
                                            backend::NormKind norm);

// Writes ws.x anew from the planned batch's tokens.
void run_input_embedding(backend::Backend& op, const ModelConfig& config, const InputEmbedding& embedding,
                         Workspace& ws);

}  // namespace kvasir::model
