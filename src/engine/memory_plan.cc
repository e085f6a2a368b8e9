#include "engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/kv_layout.h"
#include "backend/registry.h"
#include "base/checked_math.h"
#include "base/units.h"
#include "engine/batched_tokens.h"
#include "engine/kv_params.h"
#include "kv/cells/cell.h"
#include "kv/kv_cache_config.h"
#include "model/workspace.h"

namespace kvasir {
namespace {

constexpr std::int32_t kMinModelLenTokens = 64;  // less than this answers no request
constexpr std::int64_t kHiddenStatesPart = 16;   // of what weights leave, one part at most
constexpr std::int64_t kBlockTableBytes = 280;   // of a block's id: pool, prefix index, directory; measured

std::int64_t block_bytes(const EngineConfig& config, const model::ModelConfig& model,
                         const model::LayerGroup& group) {
  const backend::KvLayout layout{
      .format = format_of_new_cells(config.kv_cache_type, model),
      .num_layers = model.num_kv_layers_of(group),
      .num_kv_heads = model.num_kv_heads_of(group),
      .head_dim = model.head_dim_of(group)};
  return layout.block_bytes();
}

// Blocks that one sequence of num_tokens holds at once in a group.
std::int64_t blocks_of_sequence(const EngineConfig& config, const model::LayerGroup& group,
                                std::int64_t num_tokens) {
  std::int64_t tokens = num_tokens;
  if (group.window > 0) tokens = std::min<std::int64_t>(tokens, group.window + config.max_num_batched_tokens);
  return ceil_div<std::int64_t>(tokens, kv::kTokensPerBlock) + (group.window > 0 ? 1 : 0);
}

}  // namespace

std::int32_t max_logit_rows(const model::ModelConfig& model) {
  constexpr std::int64_t kMaxLogitFloats = 4 << 20, kMostRows = 64;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(kMaxLogitFloats / model.vocab_size, 1, kMostRows));
}

KvSize kv_of_tokens(const EngineConfig& config, const model::ModelConfig& model, std::int64_t length,
                    std::int64_t num_tokens) {
  KvSize size;
  for (const model::LayerGroup& group : model.layer_groups) {
    std::int64_t blocks = ceil_div<std::int64_t>(num_tokens, kv::kTokensPerBlock);
    if (group.window > 0 && !model.is_encoder) {
      blocks = std::min(blocks + 2, 2 * config.max_num_seqs * blocks_of_sequence(config, group, length));
    }
    size.num_blocks.push_back(blocks);
    const std::int64_t bytes = blocks * block_bytes(config, model, group);
    size.num_bytes += bytes;
    const bool is_full = group.window == 0;
    if (is_full) size.num_full_bytes += bytes;
    size.table_bytes += kBlockTableBytes * blocks * (is_full ? kv::kBlockIdsPerRoom : 1);
    size.num_block_ids += blocks * kv::kBlockIdsPerRoom;
  }
  return size;
}

std::int64_t workspace_bytes(const EngineConfig& config, const model::ModelConfig& model, const WorkspaceUse& use) {
  const std::int64_t vocab = model.vocab_size;
  const std::int64_t per_logit_row = 4 * (vocab + vocab / backend::kLogitsPerTile) +
                                     model::input_row_bytes(model.hidden_size, use.parts);
  const std::int64_t num_rows = use.num_rows > 0 ? use.num_rows : config.max_num_batched_tokens;
  return model::workspace_row_bytes(model, use.parts) * num_rows +
         (model.is_encoder ? 0 : per_logit_row * use.num_logit_rows);
}

namespace {

// A token's hidden state is a row of floats: a tenth to a third of its KV in all layers. Room for one prompt,
// or for a step's tokens of several, will do.
std::int32_t prefill_only_tokens(const EngineConfig& config, const model::ModelConfig& model,
                                 std::int64_t length, std::int64_t room) {
  if (!config.prefill_only || !model.can_run_layer_by_layer()) return 0;
  const std::int64_t affordable =
      std::max<std::int64_t>(0, room / kHiddenStatesPart / (4ll * model.hidden_size));
  return static_cast<std::int32_t>(
      std::min(affordable, std::max<std::int64_t>(length, config.max_num_batched_tokens)));
}

Result<std::int32_t> model_length(const EngineConfig& config, const model::ModelConfig& model) {
  if (config.max_model_len_tokens > model.context_length_tokens) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("ctx: the model was trained for {} tokens, {} were asked for",
                                  model.context_length_tokens, config.max_model_len_tokens),
                      "ctx");
  }
  return config.max_model_len_tokens > 0 ? config.max_model_len_tokens : model.context_length_tokens;
}

}  // namespace

std::int64_t default_memory_bytes(std::int64_t weight_bytes, std::int64_t available_bytes) {
  const std::int64_t most = available_bytes - available_bytes / 10;
  return std::min(most, std::max(available_bytes / 2, weight_bytes + available_bytes / 4));
}

// The plan before loading does not know yet what the tokenizer takes (SmolLM2: 430 bytes a token), nor the weights as
// packed.
std::int64_t sufficient_budget(std::int64_t bytes, std::int64_t kv_bytes, std::int64_t reserved_bytes,
                               std::int64_t vocab_size) {
  constexpr std::int64_t kMiB = 1 << 20, kTokenizerBytesPerToken = 512;
  const std::int64_t with_margin = bytes + ceil_div(kv_bytes, kHiddenStatesPart - 1) +
                                   kTokenizerBytesPerToken * vocab_size + bytes / 64 + 4 * kMiB;
  const std::int64_t least =
      reserved_bytes == 0 ? with_margin
                          : std::max(with_margin + reserved_bytes, ceil_div<std::int64_t>(8 * with_margin, 7));
  return ceil_div(least, kMiB) * kMiB;
}

namespace {

struct KvTokens {
  std::int64_t needed = 0, fitting = 0;
};

// `kv_bytes` of the tokens that are needed.
Error too_little(const EngineConfig& config, const model::ModelConfig& model, const MemoryPlan& plan,
                 const KvTokens& tokens, std::int64_t kv_bytes, std::int64_t to_come_bytes) {
  const std::string_view flag = backend::is_gpu(config.device) ? "gpu-memory" : "memory";
  const std::int64_t sufficient = sufficient_budget(
      plan.weight_bytes + plan.process_bytes + to_come_bytes + workspace_bytes(config, model, {.num_logit_rows = max_logit_rows(model)}) + kv_bytes, kv_bytes,
      config.reserved_bytes, model.vocab_size);
  if (tokens.fitting >= kMinModelLenTokens) {
    return {ErrorKind::kMachine,
            fmt::format("ctx: {} tokens were asked for, {} fit into {} of memory; --{} {}MiB would do",
                        tokens.needed, tokens.fitting, format_bytes(plan.budget_bytes), flag, sufficient >> 20),
            "ctx"};
  }
  return {ErrorKind::kMachine,
          fmt::format("{}: {} for weights, {} for workspace, {} for the program and {} for requests leave no "
                      "room for {} tokens of KV in {}; --{} {}MiB would do",
                      flag, format_bytes(plan.weight_bytes), format_bytes(plan.workspace_bytes),
                      format_bytes(plan.process_bytes), format_bytes(config.reserved_bytes), tokens.needed,
                      format_bytes(plan.budget_bytes), flag, sufficient >> 20),
          std::string(flag)};
}

}  // namespace

std::string MemoryPlan::describe() const {
  std::string line =
      fmt::format("memory: {} weights + {} KV + {} workspace + {} program", format_bytes(weight_bytes),
                  format_bytes(kv_bytes), format_bytes(workspace_bytes), format_bytes(process_bytes));
  if (reserved_bytes > 0) line += fmt::format(" + {} requests", format_bytes(reserved_bytes));
  return line + fmt::format(" of {} budget", format_bytes(budget_bytes));
}

Result<MemoryPlan> plan_memory(const EngineConfig& requested, const model::ModelConfig& model,
                               std::int64_t weight_bytes, std::int64_t process_bytes,
                               std::int64_t available_bytes, std::int64_t to_come_bytes) {
  EngineConfig config = requested;
  config.max_num_batched_tokens = batched_tokens(requested, model);
  MemoryPlan plan;
  plan.budget_bytes =
      config.memory_bytes > 0 ? config.memory_bytes : default_memory_bytes(weight_bytes, available_bytes);
  plan.weight_bytes = weight_bytes;
  plan.process_bytes = process_bytes;
  plan.reserved_bytes = config.reserved_bytes;
  const std::int64_t shared_bytes = plan.budget_bytes - weight_bytes - process_bytes - config.reserved_bytes;
  const std::int64_t step_bytes = workspace_bytes(config, model, {.num_logit_rows = max_logit_rows(model)});
  plan.workspace_bytes = step_bytes;
  KVASIR_TRY(std::int64_t length, model_length(config, model));
  if (model.is_encoder) length = std::min<std::int64_t>(length, config.max_num_batched_tokens);
  plan.max_prefill_only_tokens =
      prefill_only_tokens(config, model, length, shared_bytes - plan.workspace_bytes);
  plan.workspace_bytes += 4ll * model.hidden_size * plan.max_prefill_only_tokens;
  const std::int64_t room = shared_bytes - plan.workspace_bytes;

  // Everything scales with the number of tokens that the full groups hold; find the most that fits.
  const auto kv_for = [&](std::int64_t tokens) { return kv_of_tokens(config, model, length, tokens); };
  const auto fits = [&](std::int64_t tokens) {
    const KvSize kv = kv_for(tokens);
    return kv.num_bytes <= room && kv.num_block_ids <= kv::kMaxBlockIds;
  };
  // Sequences share no block but by prefix, so each takes its last one whole.
  const std::int64_t length_in_blocks =
      ceil_div<std::int64_t>(length, kv::kTokensPerBlock) * kv::kTokensPerBlock;
  std::int64_t tokens =
      config.kv_cache_tokens > 0 ? config.kv_cache_tokens : config.max_num_seqs * length_in_blocks;
  if (!fits(tokens)) {
    std::int64_t low = 0, high = tokens;  // the largest number of tokens in [low, high) that fits
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(middle) ? low : high) = middle;
    }
    tokens = low / kv::kTokensPerBlock * kv::kTokensPerBlock;
    // A length that was asked for is kept or refused; the model's own is the most that fits.
    const bool must_be_whole = config.max_model_len_tokens > 0 && config.kv_cache_tokens == 0;
    const std::int64_t least = must_be_whole ? length : std::min<std::int64_t>(length, kMinModelLenTokens);
    if (tokens < least) {
      return std::unexpected(too_little(config, model, plan, {.needed = least, .fitting = tokens}, kv_for(least).num_bytes, to_come_bytes));
    }
  }
  const KvSize kv = kv_for(tokens);
  plan.kv_bytes = kv.num_bytes;
  for (const std::int64_t blocks : kv.num_blocks) plan.num_blocks.push_back(static_cast<std::int32_t>(blocks));
  plan.max_model_len_tokens = static_cast<std::int32_t>(std::min(length, tokens));
  return plan;
}

}  // namespace kvasir
