// kvasir bench: tokens per second, beside what the machine could do at most.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "cli/benchmark.h"
#include "cli/build_info.h"
#include "cli/draft_options.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/machine_report.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "cli/workload_speed.h"
#include "eval/workload.h"
#include "engine/host_isa.h"

namespace kvasir::cli {
namespace {

struct BenchOptions {
  std::string model;
  std::vector<std::int32_t> prompts = {128, 512};
  std::int32_t n_gen = 128;
  std::vector<std::int32_t> depths = {0};
  std::vector<std::int32_t> batches = {1};
  std::vector<std::string> speculate = {"off"};
  std::string workload;  // a file of prompts, instead of all other cases; empty: none
  double replay_accept = -1.0;
  std::int32_t repeat = 5;
  KvParams kv;
  EngineOptions engine = {.no_prefix_cache = true};
};

struct BenchResult {
  BenchmarkCase test;
  Speed tokens_per_s;
  MachineLimits limits;  // the better of just before and just after, and no less than was reached
  double share_of_limit = 0.0;
  double bytes_per_step = 0.0;  // that generation reads
};

struct BenchReport {
  MachineLimits limits;
  ModelInfo model;
  std::vector<BenchResult> results;
};

std::vector<BenchmarkCase> cases_of(const BenchOptions& options) {
  std::vector<BenchmarkCase> cases;
  const bool has_workload = !options.workload.empty();
  for (std::int32_t n_prompt : options.prompts) {
    if (n_prompt > 0 && !has_workload) {
      cases.push_back({.kind = BenchmarkKind::kPrompt, .n_prompt = n_prompt, .kv = options.kv});
    }
  }
  if (options.n_gen == 0) return cases;
  for (std::int32_t depth : has_workload ? std::vector{0} : options.depths) {
    for (std::int32_t batch : options.batches) {
      for (const std::string& speculate : options.speculate) {
        cases.push_back({.kind = has_workload ? BenchmarkKind::kWorkload : BenchmarkKind::kGeneration,
                         .n_gen = options.n_gen,
                         .depth = depth,
                         .batch = batch,
                         .kv = options.kv,
                         .speculate = speculate,
                         .replay_accept = options.replay_accept});
      }
    }
  }
  return cases;
}

// Each case again behind itself, with the adapters.
std::vector<BenchmarkCase> with_adapters(const std::vector<BenchmarkCase>& cases, const std::vector<AdapterConfig>& adapters) {
  if (adapters.empty()) return cases;
  std::vector<BenchmarkCase> both;
  for (const BenchmarkCase& test : cases) {
    both.push_back(test);
    both.push_back(test);
    for (const AdapterConfig& adapter : adapters) both.back().adapters.push_back(adapter.name);
  }
  return both;
}

// Just the room that the largest case takes.
Result<EngineConfig> engine_config_for(const BenchOptions& options, const std::vector<BenchmarkCase>& cases,
                                       const GlobalOptions& globals) {
  EngineOptions engine = options.engine;
  engine.max_num_seqs = 1;
  const bool speculates = std::ranges::any_of(options.speculate, [](const std::string& way) { return way != "off"; });
  engine.speculate = speculates ? "auto" : "off";
  for (const BenchmarkCase& test : cases) engine.max_num_seqs = std::max(engine.max_num_seqs, test.batch);
  if (engine.max_num_batched_tokens > 0) {
    engine.max_num_batched_tokens = std::max(engine.max_num_batched_tokens, engine.max_num_seqs);
  }
  for (const BenchmarkCase& test : cases) {
    if (test.kind == BenchmarkKind::kWorkload) continue;  // its prompts need a tokenizer
    engine.ctx_tokens = std::max(engine.ctx_tokens, context_tokens_of(test, engine.max_num_batched_tokens));
  }
  return make_engine_config(engine, globals);
}

// Keys and values that one token's attention reads behind num_tokens others; of those without a window a
// policy has kept a share.
double kv_bytes_behind(const ModelInfo& model, double num_tokens, double kept_share) {
  double bytes = 0.0;
  for (const KvGroupInfo& group : model.kv_groups) {
    const bool is_windowed = group.window_tokens > 0;
    const double num_seen = is_windowed ? std::min<double>(num_tokens, group.window_tokens) : num_tokens;
    bytes += (is_windowed ? 1.0 : kept_share) * num_seen * static_cast<double>(group.bytes_per_token);
  }
  return bytes;
}

// The bytes that a step of generation reads: all weights but the skipped part of the head, its adapters', and every
// stream's keys and values, as they are half way.
double bytes_per_step(const BenchmarkCase& test, const Speed& speed, const Engine& engine) {
  const ModelInfo model = engine.model_info();
  const EngineStats stats = engine.stats();
  double weights = static_cast<double>(model.weight_bytes) - speed.skipped_bytes_per_step;
  if (!test.adapters.empty()) {
    const auto num_used = std::min<std::size_t>(test.adapters.size(), static_cast<std::size_t>(test.batch));
    weights += static_cast<double>(stats.adapter_bytes) * static_cast<double>(num_used) / static_cast<double>(test.adapters.size());
  }
  return weights + test.batch * kv_bytes_behind(model, test.depth + 0.5 * test.n_gen, speed.kv_bytes_share);
}

// Products of weights with a token: all layers', and the head's with one that is generated. Only the last
// token of a prompt meets the head.
double products_per_token(const BenchmarkCase& test, const ModelInfo& model) {
  const bool meets_head = test.kind == BenchmarkKind::kGeneration;
  const auto head = static_cast<double>(model.vocab_size) * static_cast<double>(model.hidden_size);
  return static_cast<double>(model.num_layer_parameters) + (meets_head ? head : 0.0);
}

bool has_float_weights(const ModelInfo& model) {
  return model.quantization.ends_with("F16") || model.quantization.ends_with("F32");
}

// As a share of the peak of the unit that multiplies such weights.
double share_of_products(const BenchmarkCase& test, const Speed& speed, const ModelInfo& model,
                         const MachineLimits& limits) {
  const double peak_gmac_s = has_float_weights(model) ? limits.fp32_gflop_s / 2 : limits.int8_gmac_s;
  return speed.median * products_per_token(test, model) / (1e9 * peak_gmac_s);
}

// The share of the limit that binds: a prompt's is products; generation's is reading, until enough streams
// share it.
double share_of_limit(const BenchmarkCase& test, const Speed& speed, double bytes, const ModelInfo& model,
                      const MachineLimits& limits) {
  const double products = share_of_products(test, speed, model, limits);
  if (test.kind == BenchmarkKind::kPrompt) return std::min(1.0, products);
  const double steps_per_s = speed.median / test.batch;
  return std::min(1.0, std::max(products, steps_per_s * bytes / (1e9 * limits.read_gb_s)));
}

// A speed that was reached is no more than the limit: the probes had other load beside them, or the weights were in
// a cache.
void raise_to_reached(const BenchmarkCase& test, const Speed& speed, double bytes, const ModelInfo& model,
                      MachineLimits& limits) {
  const double products = std::max(1.0, share_of_products(test, speed, model, limits));
  (has_float_weights(model) ? limits.fp32_gflop_s : limits.int8_gmac_s) *= products;
  if (test.kind == BenchmarkKind::kPrompt) return;
  limits.read_gb_s = std::max(limits.read_gb_s, speed.median / test.batch * bytes / 1e9);
}

// Other load on the machine lowers a probe and never raises it.
MachineLimits better_of(const MachineLimits& a, const MachineLimits& b) {
  MachineLimits limits = a;
  limits.read_gb_s = std::max(a.read_gb_s, b.read_gb_s);
  limits.int8_gmac_s = std::max(a.int8_gmac_s, b.int8_gmac_s);
  limits.fp32_gflop_s = std::max(a.fp32_gflop_s, b.fp32_gflop_s);
  limits.levels.clear();
  return limits;
}

// Which case takes the most tokens, and why it cannot have them.
std::string beyond_context(const std::vector<BenchmarkCase>& cases, const EngineConfig& config,
                           std::string_view why) {
  const auto& longest = *std::ranges::max_element(cases, {}, [&](const BenchmarkCase& test) {
    return context_tokens_of(test, config.max_num_batched_tokens);
  });
  std::string what = longest.kind == BenchmarkKind::kPrompt
                         ? fmt::format("--prompt {}", longest.n_prompt)
                         : fmt::format("--depth {} --gen {}", longest.depth, longest.n_gen);
  // The first stream generates until the last one's prompt has had its steps.
  if (longest.batch > 1) what += fmt::format(" --batch {}", longest.batch);
  if (longest.batch > 1 && config.max_num_batched_tokens > 0) {
    what += fmt::format(" --max-num-batched-tokens {}", config.max_num_batched_tokens);
  }
  return fmt::format("bench: {} and what follows: {}", what, why);
}

Result<BenchReport> measure(const BenchOptions& options, const GlobalOptions& globals,
                            Interruption& interruption) {
  std::vector<BenchmarkCase> cases = cases_of(options);
  if (cases.empty()) {
    return make_error(ErrorKind::kUsage, "bench: --prompt 0 with --gen 0 leaves nothing to measure",
                      "prompt");
  }
  if (options.replay_accept >= 0.0 && std::ranges::find(options.speculate, "auto") == options.speculate.end()) {
    return make_error(ErrorKind::kUsage, "--replay-accept: nothing is guessed, as --speculate has no auto", "replay-accept");
  }
  KVASIR_TRY(const EngineConfig config, engine_config_for(options, cases, globals));
  cases = with_adapters(cases, config.adapters);
  auto opened = open_session(options.model, config, globals, &interruption.signals(), options.engine.kv_log);
  if (!opened && opened.error().param == "ctx") {
    return make_error(ErrorKind::kUnmet, beyond_context(cases, config, opened.error().message));
  }
  KVASIR_TRY(const ModelSession session, std::move(opened));
  std::vector<eval::WorkloadItem> items;
  if (!options.workload.empty()) {
    KVASIR_TRY(const std::string lines, read_input_file(options.workload));
    KVASIR_TRY(items, eval::parse_workload(*session.engine, lines, options.workload));
  }
  BenchReport report;
  KVASIR_TRY(report.limits, measure_limits(globals.threads));
  report.model = session.engine->model_info();
  ProgressReporter progress({.quiet = globals.quiet});
  for (const BenchmarkCase& test : cases) {
    const auto show = [&](std::int32_t num_done) {
      const double done = double(report.results.size()) + double(num_done) / (options.repeat + 1);
      progress.report_fraction(fmt::format("case {} of {}", report.results.size() + 1, cases.size()),
                               done / double(cases.size()));
    };
    show(0);
    KVASIR_TRY(const MachineLimits before, measure_limits(globals.threads, ProbeScope::kTotals));
    const BenchmarkEvents events = {.keep_going = interruption.keep_going(), .run = show};
    const bool is_workload = test.kind == BenchmarkKind::kWorkload;
    auto speed = is_workload ? measure_workload(*session.engine, items, test, options.repeat, events)
                             : measure_speed(*session.engine, test, options.repeat, config.max_num_batched_tokens, events);
    if (!speed && speed.error().kind == ErrorKind::kCancelled) break;
    if (!speed) return std::unexpected(std::move(speed).error());
    KVASIR_TRY(const MachineLimits after, measure_limits(globals.threads, ProbeScope::kTotals));
    MachineLimits limits = better_of(before, after);
    if (is_workload) {  // steps of all kinds, which no one limit binds
      report.results.push_back({test, std::move(*speed), limits});
      continue;
    }
    const double bytes = bytes_per_step(test, *speed, *session.engine);
    raise_to_reached(test, *speed, bytes, report.model, limits);
    const double share = share_of_limit(test, *speed, bytes, report.model, limits);
    report.results.push_back({test, std::move(*speed), limits, share, bytes});
  }
  progress.clear();
  if (report.results.size() < cases.size()) {
    say(fmt::format("kvasir: interrupted after {} of {} cases", report.results.size(), cases.size()));
  }
  return report;
}

void write_speculation(JsonWriter& json, const BenchResult& result) {
  const Speed& speed = result.tokens_per_s;
  if (result.test.kind != BenchmarkKind::kPrompt) {
    json.member("speculate", result.test.speculate).member("tokens_per_step", speed.tokens_per_step());
    if (speed.num_draft_tokens > 0) {
      json.member("accept_rate",
                  static_cast<double>(speed.num_draft_tokens_accepted) / static_cast<double>(speed.num_draft_tokens));
    }
  }
  json.member("tokens_sha256", speed.tokens_sha256);
  if (result.test.replay_accept >= 0.0) json.member("replay_accept", result.test.replay_accept);
  if (result.test.adapters.empty()) return;
  json.key("lora").begin_array();
  for (const std::string& name : result.test.adapters) json.value(name);
  json.end_array();
}

void write_result(JsonWriter& json, const BenchResult& result) {
  json.begin_object()
      .member("test", name_of(result.test.kind))
      .member("n_prompt", result.test.n_prompt)
      .member("n_gen", result.test.n_gen)
      .member("depth", result.test.depth)
      .member("batch", result.test.batch)
      .key("tokens_per_s")
      .begin_object()
      .member("median", result.tokens_per_s.median)
      .member("min", result.tokens_per_s.min)
      .member("max", result.tokens_per_s.max)
      .key("runs")
      .begin_array();
  for (double run : result.tokens_per_s.runs) json.value(run);
  json.end_array().end_object();
  if (result.test.kind == BenchmarkKind::kGeneration) json.member("bytes_per_step", result.bytes_per_step);
  json.member("kv_bytes_share", result.tokens_per_s.kv_bytes_share);
  write_speculation(json, result);
  json.key("limits");
  write_limits(json, result.limits);
  if (result.test.kind != BenchmarkKind::kWorkload) json.member("share_of_limit", result.share_of_limit);
  json.end_object();
}

void write_context(JsonWriter& json, const BenchOptions& options, const GlobalOptions& globals,
                   const BenchReport& report) {
  const Machine machine = describe_machine();
  json.key("machine")
      .begin_object()
      .member("cpu", machine.cpu_model)
      .member("logical_cpus", machine.num_logical_cpus)
      .member("physical_cores", machine.num_physical_cores)
      .member("threads", report.limits.num_threads)
      .member("memory_bytes", machine.total_memory_bytes)
      .end_object();
  const BuildInfo build = build_info();
  json.key("build")
      .begin_object()
      .member("version", build.version)
      .member("compiler", build.compiler)
      .member("build_type", build.build_type)
      .member("isa", globals.isa.empty() ? host_isas().front() : globals.isa)
      .end_object();
  json.key("model")
      .begin_object()
      .member("argument", options.model)
      .member("name", report.model.name)
      .member("architecture", report.model.architecture)
      .member("quantization", report.model.quantization)
      .member("parameters", report.model.num_parameters)
      .member("weight_bytes", report.model.weight_bytes)
      .member("mode", options.engine.fast ? "fast" : "exact")
      .end_object()
      .member("device", report.model.device);
}

int print_bench_json(const BenchOptions& options, const GlobalOptions& globals, const BenchReport& report,
                     int exit_code) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object();
  write_context(json, options, globals, report);
  json.key("limits");
  write_limits(json, report.limits);
  json.key("results").begin_array();
  for (const BenchResult& result : report.results) write_result(json, result);
  json.end_array().end_object();
  return print_document(std::move(out), exit_code);
}

int print_bench_table(const BenchOptions& options, const BenchReport& report, int exit_code) {
  print(fmt::format("{} {}{}, limits: {}\n", printable_line(options.model), report.model.quantization,
                    options.engine.fast ? " in fast mode" : "", describe_limits(report.limits)));
  const bool speculates = std::ranges::any_of(
      report.results, [](const BenchResult& result) { return result.test.speculate != "off"; });
  const bool has_adapters = std::ranges::any_of(report.results, [](const BenchResult& result) { return !result.test.adapters.empty(); });
  print(fmt::format("{:<12}{:>8}{:>8}{:>8}{:>14}{:>26}{:>10}{}{}\n", "test", "tokens", "depth", "batch", "tokens/s",
                    "min .. max", "of limit", speculates ? "  speculate  tokens/step" : "", has_adapters ? "  adapters" : ""));
  for (const BenchResult& result : report.results) {
    const BenchmarkCase& test = result.test;
    const Speed& speed = result.tokens_per_s;
    const bool is_prompt = test.kind == BenchmarkKind::kPrompt;
    const std::string guessed = speculates && !is_prompt ? fmt::format("{:>11}{:>13.2f}", test.speculate, speed.tokens_per_step()) : "";
    const std::string of_limit = test.kind == BenchmarkKind::kWorkload ? "" : fmt::format("{:.0f}%", 100 * result.share_of_limit);
    const std::string adapters = has_adapters ? fmt::format("{:>10}", test.adapters.size()) : "";
    print(fmt::format("{:<12}{:>8}{:>8}{:>8}{:>14.1f}{:>26}{:>10}{}{}\n", name_of(test.kind),
                      is_prompt ? test.n_prompt : test.n_gen, test.depth, test.batch, speed.median,
                      fmt::format("{:.1f} .. {:.1f}", speed.min, speed.max), of_limit, guessed, adapters));
  }
  return finish_output(exit_code);
}

Result<int> bench(const BenchOptions& options, const GlobalOptions& globals) {
  Interruption interruption;
  KVASIR_TRY(const BenchReport report, measure(options, globals, interruption));
  return globals.json ? print_bench_json(options, globals, report, interruption.exit_code())
                      : print_bench_table(options, report, interruption.exit_code());
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* verb = app.add_subcommand("bench", "Measure prefill and decode speed in tokens per second");
  verb->add_option("MODEL,-m,--model", options->model, "Catalogue name, .gguf file or folder")->required();
  const CLI::Validator lengths = whole_number(0, kMaxLengthTokens);
  verb->add_option("--prompt", options->prompts, "Prompt lengths, e.g. 128,512 (0: none)")
      ->delimiter(',')
      ->transform(lengths)
      ->default_str("128,512");
  verb->add_option("--gen", options->n_gen, "Tokens to generate (0: none)")
      ->transform(lengths)
      ->capture_default_str();
  verb->add_option("--depth", options->depths, "Context tokens before the generated ones, e.g. 0,2048")
      ->delimiter(',')
      ->transform(lengths)
      ->default_str("0");
  verb->add_option("--batch", options->batches, "Concurrent sequences, e.g. 1,8")
      ->delimiter(',')
      ->transform(whole_number(1, 4096))
      ->default_str("1");
  verb->add_option("--repeat", options->repeat, "Measured repetitions, after one warm-up run")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  add_kv_type_option(*verb, options->engine);
  add_kv_policy_options(*verb, options->kv);
  add_kv_log_option(*verb, options->engine.kv_log);
  add_weight_options(*verb, options->engine);
  add_adapter_options(*verb, options->engine);
  verb->add_option("--speculate", options->speculate, "Ways of guessing tokens, each of which is a result: off,auto")
      ->delimiter(',')
      ->check(one_of({"auto", "suffix", "off"}))
      ->default_str("off");
  add_draft_options(*verb, options->engine);
  verb->add_option("--workload", options->workload,
                   "Greedy answers to the prompts of a file instead: JSON lines {prompt or messages, max_tokens}, a result for each --batch");
  verb->add_option("--replay-accept", options->replay_accept,
                   "Guess the answers themselves, each token right with this probability: what a drafter as good would bring")
      ->check(CLI::Range(0.0, 1.0))
      ->check(CLI::Validator([](const std::string& text) { return text.find_first_of("nN") == text.npos ? "" : "takes a number from 0 to 1"; }, ""));
  add_step_option(*verb, options->engine);
  on_chosen(*verb, context, [options, &context] { return bench(*options, context.options); });
}

}  // namespace kvasir::cli
