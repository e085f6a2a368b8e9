#include "model/layers/input_embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace kvasir::model {
namespace {

constexpr std::int64_t kMaxTokenTypes = 256;  // Request::prompt_token_types has bytes

Status load_positions(WeightLoader& loader, const ModelConfig& config, InputEmbedding& embedding) {
  const std::string name = "position_embd.weight";
  const std::int64_t num_rows = loader.num_rows(name);
  const std::int64_t needed = std::int64_t{config.first_position_row} + config.context_length_tokens;
  KVASIR_TRY(embedding.positions,
             loader.table(name, std::max<std::int64_t>(num_rows, 1), config.hidden_size));
  if (num_rows < needed) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("tensor {}: must have a row for each of {} positions, has {}", name, needed, num_rows));
  }
  if (loader.is_dry()) return {};
  const auto skipped = std::ptrdiff_t{config.first_position_row} * config.hidden_size;
  embedding.positions.erase(embedding.positions.begin(), embedding.positions.begin() + skipped);
  return {};
}

Status load_types(WeightLoader& loader, const ModelConfig& config, InputEmbedding& embedding) {
  const std::string name = "token_types.weight";
  const std::int64_t num_rows = loader.num_rows(name);
  if (num_rows == 0) return {};
  KVASIR_TRY(embedding.types, loader.table(name, num_rows, config.hidden_size));
  embedding.num_token_types = static_cast<std::int32_t>(std::min(num_rows, kMaxTokenTypes));
  return {};
}

}  // namespace

Result<InputEmbedding> load_input_embedding(WeightLoader& loader, const ModelConfig& config,
                                            backend::NormKind norm) {
  InputEmbedding embedding;
  KVASIR_TRY(embedding.tokens, loader.view("token_embd.weight", config.vocab_size, config.hidden_size));
  if (config.has_learned_positions) KVASIR_CHECKED(load_positions(loader, config, embedding));
  if (config.is_encoder) KVASIR_CHECKED(load_types(loader, config, embedding));
  if (norm == backend::NormKind::kNone) return embedding;
  KVASIR_TRY(embedding.norm, load_norm(loader, "token_embd_norm", norm, config.hidden_size, config.norm_eps));
  return embedding;
}

void run_input_embedding(backend::Backend& op, const ModelConfig& config, const InputEmbedding& embedding,
                         Workspace& ws) {
  op.embed({.table = embedding.tokens,
            .scale = config.embedding_scale,
            .positions = embedding.positions,
            .types = embedding.types},
           ws.x);
  if (embedding.norm.kind != backend::NormKind::kNone) op.norm_in_place(ws.x, embedding.norm.op());
}

}  // namespace kvasir::model
