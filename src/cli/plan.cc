// kvasir plan: what a model needs here for so many users, and how fast it can be, from its header alone.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backend/registry.h"
#include "base/json_writer.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/described_model.h"
#include "cli/engine_options.h"
#include "cli/machine_report.h"
#include "cli/number_range.h"
#include "cli/server_reserve.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/capacity_plan.h"
#include "engine/model_check.h"
#include "eval/kv_cost_curve.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

constexpr std::int32_t kUsualContextTokens = 4096;

struct PlanOptions {
  std::string model;
  std::int32_t context_tokens = 0;  // 0: of prompt and answer, else the usual or the model's
  std::int32_t prompt_tokens = 0;
  std::int32_t answer_tokens = 0;
  std::int32_t num_users = 1;
  KvParams kv;
  EngineOptions engine;
};

// A budget's cost, by what `kvasir calibrate-kv --cost-curve` measured.
struct KvCost {
  double budget = 1.0;
  std::string policy;
  eval::KvExpectation expected;
};

struct Plan {
  CapacityRequest request;
  CapacityPlan capacity;
  RatePlan rates;
  std::optional<KvCost> kv_cost;
};

constexpr double kUsualBudget = 0.3;  // where none is asked for

// Nothing where no curve lies beside the model, as of one on the hub. Error: kBadFile (its calibration).
Result<std::optional<KvCost>> kv_cost_of(const PlanOptions& options, double kv_share) {
  const auto path = store::resolve_model(options.model);
  if (!path) return std::nullopt;
  KVASIR_TRY(const auto calibration, io::read_kv_calibration(io::kv_calibration_path(*path)));
  if (!calibration || calibration->cost_curve.points.empty()) return std::nullopt;
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(*path));
  if (calibration->model != fingerprint) return std::nullopt;
  KvCost cost{.budget = kv_share < 1.0 ? kv_share : kUsualBudget, .policy = calibration->cost_curve.policy, .expected = {}};
  const auto expected = eval::expected_cost(calibration->cost_curve, cost.budget);
  if (!expected) return std::nullopt;
  cost.expected = *expected;
  return cost;
}

// A budget in bytes is a share of one user's context.
double kv_share_of(const KvParams& kv, const CapacityModel& model, std::int32_t context_tokens) {
  if (kv.budget_bytes == 0) return kv.budget;
  double f16_bytes = 0.0;
  for (const auto& group : model.config.layer_groups) {
    if (group.window > 0) continue;
    f16_bytes += 4.0 * context_tokens * model.config.num_kv_heads_of(group) * model.config.head_dim_of(group) *
                 static_cast<double>(group.layers.size());
  }
  return std::min(1.0, static_cast<double>(kv.budget_bytes) / std::max(1.0, f16_bytes));
}

Result<CapacityRequest> request_for(const PlanOptions& options, const EngineConfig& config,
                                    const CapacityModel& model) {
  const std::int32_t said = options.prompt_tokens + options.answer_tokens;
  if (options.context_tokens > 0 && said > options.context_tokens) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("--context: prompt and answer are {} tokens, got {}", said, options.context_tokens),
                      "context");
  }
  CapacityRequest request{.answer_tokens = options.answer_tokens, .num_users = options.num_users};
  request.context_tokens = options.context_tokens > 0 ? options.context_tokens
                           : said > 0                 ? said
                                                      : std::min(kUsualContextTokens, model.config.context_length_tokens);
  request.memory_bytes = config.memory_bytes > 0 ? config.memory_bytes : available_memory_bytes();
  request.kv_share = kv_share_of(options.kv, model, request.context_tokens);
  return request;
}

Result<CapacityModel> measure(const PlanOptions& options, const EngineConfig& config, const GlobalOptions& globals) {
  KVASIR_TRY(DescribedModel described, open_described(options.model, globals));
  const auto& source = described.opened.source();
  if (!source.faults().empty()) return make_error(ErrorKind::kBadFile, described.in_words(source.faults().front()));
  if (!source.unsupported().empty()) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: {}", printable_line(options.model), reasons_not_to_run(described.opened).front()));
  }
  if (!config.quantize.empty()) KVASIR_CHECKED(described.opened.quantize(config.quantize, 1));
  auto model = measure_model(described.opened, config);
  if (!model && model.error().kind == ErrorKind::kBadFile) {
    model.error().message = fmt::format("{}: {}", printable_line(options.model), model.error().message);
  }
  return model;
}

int print_plan_json(const PlanOptions& options, const Plan& plan) {
  const CapacityPlan& capacity = plan.capacity;
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object()
      .member("model", options.model)
      .member("fits", capacity.fits)
      .member("context_tokens", plan.request.context_tokens)
      .member("users", plan.request.num_users)
      .member("memory_bytes", plan.request.memory_bytes)
      .member("total_bytes", capacity.total_bytes)
      .member("weights_bytes", capacity.weights_bytes)
      .member("mapped_bytes", capacity.mapped_bytes)
      .member("workspace_bytes", capacity.workspace_bytes)
      .member("kv_bytes", capacity.kv_bytes)
      .member("kv_bytes_per_token", capacity.kv_bytes_per_token)
      .member("program_bytes", capacity.program_bytes)
      .member("budget_bytes", capacity.budget_bytes)
      .member("max_users", capacity.max_users)
      .member("max_context_tokens", capacity.max_context_tokens)
      .member("decode_tokens_per_s", plan.rates.decode_tokens_per_s)
      .member("prefill_tokens_per_s", plan.rates.prefill_tokens_per_s)
      .member("bound_by", plan.rates.is_bandwidth_bound ? "bandwidth" : "compute");
  if (plan.kv_cost) {
    json.key("kv_cost")
        .begin_object()
        .member("budget", plan.kv_cost->budget)
        .member("policy", plan.kv_cost->policy)
        .member("kl", plan.kv_cost->expected.kl)
        .member("ratio_low", plan.kv_cost->expected.ratio_low)
        .member("ratio_high", plan.kv_cost->expected.ratio_high)
        .end_object();
  }
  json.key("advice").begin_array();
  for (const std::string& line : capacity.advice) json.value(line);
  json.end_array().end_object();
  return print_document(std::move(out), capacity.fits ? kExitDone : kExitNo);
}

int print_plan(const PlanOptions& options, const Plan& plan) {
  const CapacityPlan& capacity = plan.capacity;
  const CapacityRequest& request = plan.request;
  const auto line = [](std::string_view label, std::int64_t bytes, const std::string& note = "") {
    print(fmt::format("  {:<12}{:>10}{}\n", label, format_bytes(bytes), note.empty() ? "" : "  " + note));
  };
  print(fmt::format("{} for {} user{} of {} tokens\n", printable_line(options.model), request.num_users,
                    request.num_users == 1 ? "" : "s", request.context_tokens));
  line("weights", capacity.weights_bytes, "packed");
  line("embedding", capacity.mapped_bytes, "stays in the file, which is mapped");
  line("workspace", capacity.workspace_bytes, "of the largest step");
  line("KV cache", capacity.kv_bytes, fmt::format("{} bytes a token", capacity.kv_bytes_per_token));
  line("program", capacity.program_bytes);
  line("total", capacity.total_bytes,
       fmt::format("{} {}", capacity.fits ? "fits into" : "does not fit into", format_bytes(request.memory_bytes)));
  print(fmt::format("{} users fit at this context, {} tokens for so many users\n", capacity.max_users,
                    capacity.max_context_tokens));
  print(fmt::format("about {:.3g} tokens/s of answers without guesses, bound by {}; {:.3g} tokens/s of prompts\n",
                    plan.rates.decode_tokens_per_s, plan.rates.is_bandwidth_bound ? "bandwidth" : "compute",
                    plan.rates.prefill_tokens_per_s));
  if (plan.kv_cost) {
    const KvCost& cost = *plan.kv_cost;
    print(fmt::format("KV at {:.3g}%: perplexity ratio {:.3f} to {:.3f} expected with {}\n", 100 * cost.budget, cost.expected.ratio_low,
                      cost.expected.ratio_high, cost.policy));
  }
  if (capacity.fits) {
    print(fmt::format("serve it with: kvasir serve {} --ctx {} --max-num-seqs {} --memory {}MiB\n",
                      printable_line(options.model), request.context_tokens, request.num_users,
                      capacity.budget_bytes >> 20));
  }
  if (capacity.fits && capacity.budget_bytes > request.memory_bytes) {
    print(fmt::format("which is more than {}: a server keeps room for requests besides\n", format_bytes(request.memory_bytes)));
  }
  for (const std::string& advice : capacity.advice) print(fmt::format("- {}\n", advice));
  return finish_output(capacity.fits ? kExitDone : kExitNo);
}

Result<int> plan(const PlanOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  if (backend::is_gpu(config.device)) {
    return make_error(ErrorKind::kUnmet, fmt::format("--device: plans are of the processor's memory and speed; kvasir serve --device {} "
                                                     "says what the model takes there, or refuses it", config.device), "device");
  }
  config.reserved_bytes = least_request_memory_bytes({}, false);
  config.reserved_bytes += stored_memory_bytes(config.reserved_bytes);
  KVASIR_TRY(const CapacityModel model, measure(options, config, globals));
  Plan plan;
  KVASIR_TRY(plan.request, request_for(options, config, model));
  KVASIR_TRY(plan.kv_cost, kv_cost_of(options, plan.request.kv_share));
  KVASIR_TRY(plan.capacity, plan_capacity(config, model, plan.request));
  KVASIR_TRY(const MachineLimits limits, measure_limits(globals.threads, ProbeScope::kTotals));
  plan.rates = plan_rates(config, model, plan.request, limits);
  return globals.json ? print_plan_json(options, plan) : print_plan(options, plan);
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* verb = app.add_subcommand("plan", "Say what memory a model takes for so many users, and how fast it is");
  verb->add_option("MODEL,-m,--model", options->model,
                   "A name from `kvasir list`, a .gguf file, a folder, or hf:OWNER/NAME (its headers alone are fetched)")
      ->required();
  const CLI::Validator lengths = whole_number(0, kMaxLengthTokens);
  verb->add_option("--context,--ctx,-c", options->context_tokens,
                   "Tokens of each user's prompt and answer (0: --prompt and --gen, else 4096)")
      ->transform(lengths)
      ->capture_default_str();
  verb->add_option("--prompt", options->prompt_tokens, "Tokens of the prompt (0: half of the context)")
      ->transform(lengths)
      ->capture_default_str();
  verb->add_option("--gen", options->answer_tokens, "Tokens of the answer (0: half of the context)")
      ->transform(lengths)
      ->capture_default_str();
  verb->add_option("--users", options->num_users, "Requests at the same time")
      ->transform(whole_number(1, 4096))
      ->capture_default_str();
  add_kv_type_option(*verb, options->engine);
  add_kv_policy_options(*verb, options->kv);
  add_weight_options(*verb, options->engine);
  add_step_option(*verb, options->engine);
  on_chosen(*verb, context, [options, &context] { return plan(*options, context.options); });
}

}  // namespace kvasir::cli
