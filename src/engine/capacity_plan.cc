#include "engine/capacity_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/registry.h"
#include "base/checked_math.h"
#include "base/process_memory.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "engine/batched_tokens.h"
#include "engine/kv_params.h"
#include "engine/memory_plan.h"
#include "kv/cells/cell.h"
#include "model/model.h"

namespace kvasir {
namespace {

constexpr std::int32_t kMostUsers = 4096;  // as --max-num-seqs
constexpr std::int32_t kLeastContext = 64;
// A server without a model: code, stacks, queues, connections. Measured; resident pages differ from run to run.
constexpr std::int64_t kServerBytes = std::int64_t{34} << 20;
constexpr std::int64_t kEncoderServerBytes = std::int64_t{33} << 20;  // it samples nothing
// A first request brings in as much as so many rows of an encoder's step; fitted to MiniLM and Nomic's shape.
constexpr std::int64_t kLeastTouchedRows = 192;
constexpr std::int64_t kHeapPerFreedByte = 5;  // what reading a header has freed stays resident
// Bits of a weight in files that most people choose; a file with more has a smaller sister.
constexpr double kSmallBits = 5.0;
constexpr double kSmallKvShare = 0.3;

EngineConfig config_for(const EngineConfig& base, const model::ModelConfig& model, const CapacityRequest& request) {
  EngineConfig config = base;
  config.max_num_seqs = request.num_users;
  config.max_model_len_tokens = request.context_tokens;  // an encoder's step has room for so many
  config.max_num_batched_tokens = batched_tokens(config, model);
  return config;
}

// Whole blocks for each user.
std::int64_t cached_tokens(std::int32_t context_tokens, std::int32_t num_users) {
  return std::int64_t{num_users} * ceil_div<std::int64_t>(context_tokens, kv::kTokensPerBlock) * kv::kTokensPerBlock;
}

// What new cells take, in f16's bytes.
double f16_share(const EngineConfig& config, const model::ModelConfig& model) {
  const kv::KvFormat format = format_of_new_cells(config.kv_cache_type, model);
  return static_cast<double>(kv::cell_bytes(format, model.head_dim)) /
         static_cast<double>(kv::cell_bytes(kv::KvFormat::kF16, model.head_dim));
}

// A budget bounds the groups without a window.
std::int64_t kv_bytes_of(const EngineConfig& config, const model::ModelConfig& model, const KvSize& kv,
                         double kv_share) {
  const double kept = std::min(1.0, kv_share / f16_share(config, model));
  return kv.num_bytes - kv.num_full_bytes + static_cast<std::int64_t>(kept * static_cast<double>(kv.num_full_bytes));
}

// A step of an encoder is as large as the texts that come at once.
std::int32_t touched_rows(const EngineConfig& config, const model::ModelConfig& model, const CapacityRequest& request) {
  if (!model.is_encoder) return config.max_num_batched_tokens;
  const std::int64_t asked = std::int64_t{request.num_users} * request.context_tokens;
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(config.max_num_batched_tokens, std::max(asked, kLeastTouchedRows)));
}

model::WorkspaceParts touched_parts(const model::WeightFootprint& weights) {
  return {.has_quantized_inputs = weights.float_products < weights.products(),
          .has_float_inputs = weights.float_products > 0,
          .has_gates = weights.has_gates};
}

// That a server starts with: besides the total, room that it keeps for requests and for what it cannot foresee.
std::int64_t budget_of(const EngineConfig& config, std::int64_t total_bytes, std::int64_t kv_bytes) {
  return sufficient_budget(total_bytes, kv_bytes, std::max<std::int64_t>(1, config.reserved_bytes), 0);
}

CapacityPlan sizes_of(const EngineConfig& base, const CapacityModel& model, const CapacityRequest& request) {
  const EngineConfig config = config_for(base, model.config, request);
  CapacityPlan plan;
  plan.weights_bytes = model.weights.resident_bytes();
  plan.mapped_bytes = model.weights.mapped_bytes;
  plan.workspace_bytes =
      workspace_bytes(config, model.config,
                      {.num_logit_rows = std::min(request.num_users, max_logit_rows(model.config)),
                       .num_rows = touched_rows(config, model.config, request),
                       .parts = touched_parts(model.weights)});
  std::int64_t num_cached = cached_tokens(request.context_tokens, request.num_users);
  if (model.config.is_encoder) num_cached = std::min<std::int64_t>(num_cached, config.max_num_batched_tokens);  // a step's
  const KvSize kv = kv_of_tokens(config, model.config, request.context_tokens, num_cached);
  plan.kv_bytes = kv_bytes_of(config, model.config, kv, request.kv_share);
  plan.program_bytes = model.program_bytes + kv.table_bytes;
  plan.total_bytes =
      plan.weights_bytes + plan.mapped_bytes + plan.workspace_bytes + plan.kv_bytes + plan.program_bytes;
  plan.budget_bytes = budget_of(config, plan.total_bytes, plan.kv_bytes);
  plan.fits = plan.total_bytes <= request.memory_bytes;
  return plan;
}

// The greatest number in [0, most] for which fits(number) holds; it holds up to there.
template <class Fits>
std::int32_t greatest(std::int32_t most, const Fits& fits) {
  std::int32_t low = 0, high = most + 1;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

std::int32_t most_users(const EngineConfig& config, const CapacityModel& model, CapacityRequest request) {
  return greatest(kMostUsers, [&](std::int32_t num_users) {
    request.num_users = num_users;
    return sizes_of(config, model, request).fits;
  });
}

std::int32_t most_context(const EngineConfig& config, const CapacityModel& model, CapacityRequest request) {
  const std::int32_t tokens = greatest(model.config.context_length_tokens, [&](std::int32_t context) {
    request.context_tokens = context;
    return sizes_of(config, model, request).fits;
  });
  return tokens < std::min(kLeastContext, model.config.context_length_tokens) ? 0 : tokens;
}

// Lines for a plan that does not fit: shorter prompts, KV format, budget, smaller weights, fewer users, more memory.
class Advisor {
 public:
  Advisor(const EngineConfig& config, const CapacityModel& model, const CapacityRequest& request, CapacityPlan& plan)
      : config_(config), model_(model), request_(request), plan_(plan) {}

  void advise() {
    if (plan_.max_context_tokens > 0) {
      add(fmt::format("shorter prompts: {} tokens a user fit (--context {})", plan_.max_context_tokens,
                      plan_.max_context_tokens));
    }
    advise_kv();
    advise_weights();
    if (plan_.max_users > 0) add(fmt::format("fewer users: {} fit (--users {})", plan_.max_users, plan_.max_users));
    add(fmt::format("more memory: it takes {}", format_bytes(plan_.total_bytes)));
  }

 private:
  void add(std::string line) { plan_.advice.push_back(std::move(line)); }

  std::string with_total(std::int64_t total_bytes) const {
    return fmt::format("{} in all{}", format_bytes(total_bytes),
                       total_bytes <= request_.memory_bytes ? ", which fits" : "");
  }

  void advise_kv() {
    EngineConfig smaller = config_;
    smaller.kv_cache_type = KvCacheType::kQ12;
    if (const CapacityPlan plan = sizes_of(smaller, model_, request_); plan.kv_bytes < plan_.kv_bytes) {
      add(fmt::format("a smaller KV format (--kv-type q12): {}", with_total(plan.total_bytes)));
    }
    CapacityRequest request = request_;
    request.kv_share = kSmallKvShare;
    if (const CapacityPlan plan = sizes_of(smaller, model_, request); plan.kv_bytes < plan_.kv_bytes) {
      add(fmt::format("a KV budget (--kv-policy ladder --kv-budget {}): {}", kSmallKvShare,
                      with_total(plan.total_bytes)));
    }
  }

  void advise_weights() {
    const model::WeightFootprint& weights = model_.weights;
    const auto products = static_cast<double>(weights.layer_products + weights.head_products + weights.expert_products);
    const auto small_bytes = static_cast<std::int64_t>(products * kSmallBits / 8);
    if (small_bytes >= weights.packed_bytes) return;
    const std::int64_t total = plan_.total_bytes - weights.packed_bytes + small_bytes;
    const char* how = weights.float_products > 0 ? " (--quantize q4_k, or a file in Q4_K_M)" : " (a file in Q4_K_M)";
    add(fmt::format("smaller weights{}: about {}", how, with_total(total)));
  }

  const EngineConfig& config_;
  const CapacityModel& model_;
  const CapacityRequest& request_;
  CapacityPlan& plan_;
};

// Bytes of keys and values that a token's attention reads behind num_tokens others.
double kv_read_bytes(const EngineConfig& config, const model::ModelConfig& model, double num_tokens, double kept) {
  const kv::KvFormat format = format_of_new_cells(config.kv_cache_type, model);
  double bytes = 0.0;
  for (const model::LayerGroup& group : model.layer_groups) {
    const double seen = group.window > 0 ? std::min<double>(num_tokens, group.window) : kept * num_tokens;
    const double per_token = static_cast<double>(kv::cell_bytes(format, model.head_dim_of(group))) /
                             kv::kTokensPerBlock * model.num_kv_heads_of(group) *
                             static_cast<double>(group.layers.size());
    bytes += seen * per_token;
  }
  return bytes;
}

// Multiply-adds of attention for a token behind num_tokens others.
double attention_products(const model::ModelConfig& model, double num_tokens) {
  double products = 0.0;
  for (const model::LayerGroup& group : model.layer_groups) {
    const double seen = group.window > 0 ? std::min<double>(num_tokens, group.window) : num_tokens;
    products += 2.0 * seen * model.num_heads * model.head_dim_of(group) * static_cast<double>(group.layers.size());
  }
  return products;
}

// Of a layer's experts those that some of num_tokens tokens use, were every choice as likely.
double used_expert_share(const model::ModelConfig& model, double num_tokens) {
  const backend::RoutingRule& rule = model.moe.rule;
  if (rule.num_experts == 0) return 0.0;
  return 1.0 - std::pow(1.0 - static_cast<double>(rule.num_used) / rule.num_experts, num_tokens);
}

// Seconds of one unit's work at the peaks of integer and float products. Attention's integers have 16 bits: half as
// many products a cycle.
struct ProductTime {
  const backend::MachineLimits& limits;
  double float_share = 0.0;  // of the weights' products

  double seconds(double weight_products, double of_attention) const {
    const double int8_s = 1e9 * limits.int8_gmac_s, float_s = 1e9 * limits.fp32_gflop_s / 2;
    return weight_products * ((1.0 - float_share) / int8_s + float_share / float_s) + of_attention / (int8_s / 2);
  }
};

}  // namespace

Result<CapacityPlan> plan_capacity(const EngineConfig& config, const CapacityModel& model,
                                   const CapacityRequest& request) {
  if (request.context_tokens > model.config.context_length_tokens) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("context: the model was trained for {} tokens, {} were asked for",
                                  model.config.context_length_tokens, request.context_tokens),
                      "context");
  }
  CapacityPlan plan = sizes_of(config, model, request);
  plan.kv_bytes_per_token = static_cast<std::int64_t>(kv_read_bytes(config, model.config, 1.0, 1.0));
  plan.max_users = most_users(config, model, request);
  plan.max_context_tokens = most_context(config, model, request);
  if (!plan.fits) Advisor(config, model, request, plan).advise();
  return plan;
}

RatePlan plan_rates(const EngineConfig& base, const CapacityModel& model, const CapacityRequest& request,
                    const backend::MachineLimits& limits) {
  // Fitted to `bench` on dense and mixed models of 0.1 to 30 billion weights, with 1 to 16 users. A matrix is first
  // read, then multiplied, so both times count; threads meet several times a layer.
  constexpr double kReadShare = 0.9, kProductShare = 0.6, kLayerSeconds = 25e-6;
  const EngineConfig config = config_for(base, model.config, request);
  const model::WeightFootprint& weights = model.weights;
  const double num_users = request.num_users;
  const double answer = request.answer_tokens > 0 ? request.answer_tokens : request.context_tokens / 2;
  const double prompt = std::max(1.0, request.context_tokens - answer);
  const double behind = prompt + answer / 2;
  const double kept = std::min(1.0, request.kv_share / f16_share(config, model.config));
  const double used_experts = used_expert_share(model.config, num_users);
  const double num_active = static_cast<double>(weights.expert_products) * used_expert_share(model.config, 1.0);
  const auto all_products = static_cast<double>(weights.products());
  const ProductTime time{limits, static_cast<double>(weights.float_products) / std::max(1.0, all_products)};

  double bytes = static_cast<double>(weights.packed_bytes - weights.expert_bytes) +
                 used_experts * static_cast<double>(weights.expert_bytes) +
                 num_users * kv_read_bytes(config, model.config, behind, kept);
  // The head's search for the greatest logit skips most rows for one user, but few where several users differ.
  if (request.num_users == 1) bytes -= static_cast<double>(weights.skipped_bytes);
  const double read_s = bytes / (1e9 * limits.read_gb_s * kReadShare);
  const double layer_products = static_cast<double>(weights.layer_products) + num_active;
  const double step_products = num_users * (layer_products + static_cast<double>(weights.head_products));
  const double step_s =
      time.seconds(step_products, num_users * attention_products(model.config, behind)) / kProductShare;
  const double token_s = time.seconds(layer_products, attention_products(model.config, prompt / 2)) / kProductShare;
  const double meeting_s = kLayerSeconds * static_cast<double>(model.config.num_layers);
  return {.decode_tokens_per_s = num_users / (read_s + step_s + meeting_s),
          .prefill_tokens_per_s = 1.0 / token_s,
          .is_bandwidth_bound = read_s >= step_s};
}

Result<CapacityModel> measure_model(const OpenedModel& opened, const EngineConfig& config) {
  CapacityModel model;
  KVASIR_TRY(model.config, model::load_config(opened.source()));
  ThreadPool pool(1);
  KVASIR_TRY(const auto backend,
             backend::make_cpu_backend(config.isa, pool,
                                       config.fast ? backend::Precision::kFast : backend::Precision::kExact));
  KVASIR_TRY(model.weights, model::measure_weights(opened.source(), *backend));
  // Both are what a server keeps beside the weights. They are in memory while it is measured.
  KVASIR_TRY(const auto tokenizer, opened.load_tokenizer());
  KVASIR_TRY(const auto chat_template, opened.load_chat_template(""));
  model.program_bytes = (model.config.is_encoder ? kEncoderServerBytes : kServerBytes) + heap_bytes() + heap_bytes() / kHeapPerFreedByte;
  return model;
}

}  // namespace kvasir
