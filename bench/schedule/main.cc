// kvasir_schedule: what an order of the waiting queue is worth, before a server is started.
//   kvasir_schedule [--rate R ...] [--requests N] [--tenants 1,20] [--seats 16]     arrivals that are drawn
//   zcat azure.csv.gz | kvasir_schedule --azure ...                                 of Azure's public traces
//   zcat mooncake.jsonl.gz | kvasir_schedule --mooncake ...                         of Mooncake's
// For each rate and policy a line: goodput, refusals, percentiles, and how evenly tenants are served.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "replay.h"
#include "trace.h"

namespace {

using namespace kvasir;
using namespace kvasir::schedule;

struct Options {
  TraceShape shape;
  ReplayConfig replay;
  std::vector<double> rates = {2.0};
  std::vector<std::string> policies = {kWaitingPolicyNames.begin(), kWaitingPolicyNames.end()};
  bool is_azure = false, is_mooncake = false;
};

// The least value that `share` of them do not exceed.
double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0.0;
  const auto rank = static_cast<std::size_t>(
      std::max(1.0, std::ceil(share * static_cast<double>(values.size()))));
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(rank - 1));
  return values[rank - 1];
}

struct TenantShare {
  std::vector<double> ttft_ms;
  std::int64_t num_requests = 0;
  std::int64_t num_in_slo = 0;
};

// Jain's index of the shares of requests that kept the SLO: 1 when all tenants fare alike.
double fairness(const std::vector<TenantShare>& tenants) {
  double sum = 0.0, squares = 0.0;
  for (const TenantShare& tenant : tenants) {
    const double share = tenant.num_requests == 0 ? 0.0
                                                  : static_cast<double>(tenant.num_in_slo) /
                                                        static_cast<double>(tenant.num_requests);
    sum += share;
    squares += share * share;
  }
  return squares == 0.0 ? 1.0 : sum * sum / (squares * static_cast<double>(tenants.size()));
}

void print_line(const std::vector<TraceRequest>& trace, const ReplayResult& result, const Options& options,
                double rate, const std::string& policy, double wall_seconds) {
  std::vector<TenantShare> tenants(options.shape.tenant_shares.size());
  std::vector<double> ttft_ms;
  std::int64_t num_refused = 0, num_in_slo = 0;
  for (std::size_t i = 0; i < trace.size(); ++i) {
    const RequestOutcome& outcome = result.outcomes[i];
    TenantShare& tenant = tenants[static_cast<std::size_t>(trace[i].tenant)];
    ++tenant.num_requests;
    num_refused += outcome.refused ? 1 : 0;
    num_in_slo += outcome.keeps_slo() ? 1 : 0;
    tenant.num_in_slo += outcome.keeps_slo() ? 1 : 0;
    if (outcome.refused) continue;
    ttft_ms.push_back(outcome.ttft_ms);
    tenant.ttft_ms.push_back(outcome.ttft_ms);
  }
  fmt::print("{:8.2f}  {:9}  {:7.2f}  {:6.1f}%  {:6.1f}%  {:8.0f}  {:6.0f}  {:6.0f}  {:7.0f}  {:8.3f}", rate,
             policy, static_cast<double>(num_in_slo) / result.seconds,
             100.0 * static_cast<double>(num_in_slo) / static_cast<double>(trace.size()),
             100.0 * static_cast<double>(num_refused) / static_cast<double>(trace.size()),
             static_cast<double>(result.num_generated_tokens) / result.seconds, percentile(ttft_ms, 0.5),
             percentile(ttft_ms, 0.95), percentile(ttft_ms, 0.99), fairness(tenants));
  for (const TenantShare& tenant : tenants) fmt::print("  {:6.0f}", percentile(tenant.ttft_ms, 0.95));
  fmt::print("  {:6.1f} M/min\n", static_cast<double>(trace.size()) / wall_seconds * 60e-6);
}

Status run(Options& options) {
  fmt::print(
      "requests   policy     goodput  in SLO   refused  tokens/s  TTFT p50   p95     p99     Jain   p95 of "
      "each tenant, requests simulated a minute\n");
  std::vector<TraceRequest> trace;
  const bool is_read = options.is_azure || options.is_mooncake;
  if (is_read) {
    KVASIR_TRY(trace, options.is_azure ? read_azure(options.shape) : read_mooncake(options.shape));
  }
  for (const double rate : options.rates) {
    if (is_read) {
      for (TraceRequest& request : trace) request.at_ms *= options.shape.per_second / rate;
    } else {
      options.shape.per_second = rate;
      trace = draw(options.shape);
    }
    options.shape.per_second = rate;
    for (const std::string& policy : options.policies) {
      const auto found = std::ranges::find(kWaitingPolicyNames, policy);
      options.replay.scheduler.waiting.policy = static_cast<WaitingPolicy>(found -
                                                                           kWaitingPolicyNames.begin());
      const auto began = std::chrono::steady_clock::now();
      const ReplayResult result = replay(trace, options.replay);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
      print_line(trace, result, options, rate, policy, wall.count());
    }
  }
  return {};
}

// CLI11's own take NaN.
std::string above_zero(const std::string& text) {
  double number = 0.0;
  const bool is_number = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
  return is_number && number > 0.0 ? std::string() : "takes numbers above 0, not " + text;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  sched::SchedulerConfig& scheduler = options.replay.scheduler;
  scheduler.max_step_ms = 50.0;
  scheduler.ttft_target_ms = 2000.0;
  scheduler.waiting.ageing_ms = 10'000.0;
  bool refuses_nobody = false;
  CLI::App app("The scheduler under a trace, with a machine that takes the time a formula says");
  CLI::Option* azure = app.add_flag("--azure", options.is_azure, "Rows of an Azure trace on standard input");
  app.add_flag("--mooncake", options.is_mooncake, "The same of a Mooncake trace")->excludes(azure);
  app.add_option("--rate", options.rates, "Requests a second")->delimiter(',')->check(above_zero);
  app.add_option("--requests", options.shape.num_requests, "How many")->check(CLI::PositiveNumber);
  app.add_option("--tenants", options.shape.tenant_shares, "Their shares of the requests")
      ->delimiter(',')
      ->check(above_zero);
  app.add_option("--seed", options.shape.seed, "Of what is drawn");
  app.add_option("--context", options.shape.context_tokens, "Longer requests are left out")
      ->check(CLI::Range(2, 1 << 24));
  app.add_option("--policies", options.policies, "Of fifo, priority, slo-value")
      ->delimiter(',')
      ->check(
          CLI::IsMember(std::vector<std::string>(kWaitingPolicyNames.begin(), kWaitingPolicyNames.end())));
  app.add_option("--seats", scheduler.max_num_seqs, "Sequences at once")->check(CLI::PositiveNumber);
  app.add_option("--batched-tokens", scheduler.max_num_batched_tokens, "Of one step");
  app.add_option("--max-step-ms", scheduler.max_step_ms, "Of a step with prompts beside streams");
  app.add_option("--kv-tokens", options.replay.kv_tokens, "That the cache holds");
  app.add_option("--ttft-target-ms", scheduler.ttft_target_ms, "0: none");
  app.add_flag("--refuse-nobody", refuses_nobody, "Let everybody wait");
  app.add_option("--ms-per-step", options.replay.machine.ms_per_step, "The machine")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ms-per-stream", options.replay.machine.ms_per_stream, "The machine")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ms-per-prompt-token", options.replay.machine.ms_per_prompt_token, "The machine")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ms-per-100k-keys", options.replay.machine.ms_per_100k_keys, "The machine")
      ->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, argc, argv);
  options.replay.refuses = !refuses_nobody;
  options.replay.num_tenants = static_cast<std::int32_t>(options.shape.tenant_shares.size());
  Status status = scheduler.validate();
  if (status && options.shape.context_tokens > options.replay.kv_tokens) {
    status = make_error(ErrorKind::kUsage,
                        fmt::format("--context {} is more than --kv-tokens {}", options.shape.context_tokens,
                                    options.replay.kv_tokens));
  }
  if (status) status = run(options);
  if (!status) fmt::print(stderr, "kvasir_schedule: {}\n", status.error().message);
  return status ? 0 : 2;
}
