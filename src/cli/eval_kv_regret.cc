#include "cli/eval_kv_regret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/progress_reporter.h"
#include "base/text_file.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/standard_output.h"
#include "eval/kv_plan_trials.h"
#include "eval/kv_text.h"
#include "eval/windows.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct KvRegretOptions {
  std::string model, file, acts;
  std::string policy = "ladder-priced";
  std::vector<double> budgets = {0.3, 0.2, 0.15, 0.1};
  std::int32_t num_windows = 4, first_window = 0;
};

constexpr std::int32_t kRegretWindowTokens = 2048;

// A text's acts; those whose attention is known come to a verdict.
struct Window {
  std::int32_t index = 0;
  std::vector<eval::KvPlanTrial> trials;
};

// The known acts under a budget that cost something, summed up.
struct RegretSummary {
  double budget = 1.0;
  std::int64_t num_acts = 0, num_bounded = 0, num_bounded_with_slack = 0;
  double planned = 0.0, realised = 0.0, best = 0.0, slack = 0.0;  // means
  double median_left = 0.0, median_middle = 0.0, median_ratio = 0.0;
};

double median_of(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

RegretSummary summary_of(const std::vector<Window>& windows, double budget) {
  RegretSummary summary{.budget = budget};
  std::vector<double> lefts, middles, ratios;
  for (const Window& window : windows) {
    for (const eval::KvPlanTrial& trial : window.trials) {
      if (!trial.is_known || trial.budget != budget || trial.regret.middle <= 0.0) continue;
      const eval::KvPlanRegret& regret = trial.regret;
      ++summary.num_acts;
      summary.num_bounded += regret.is_bounded() ? 1 : 0;
      summary.num_bounded_with_slack += regret.is_bounded_with_slack() ? 1 : 0;
      summary.planned += regret.planned;
      summary.realised += regret.realised;
      summary.best += regret.best;
      summary.slack += regret.slack();
      lefts.push_back(regret.left());
      middles.push_back(regret.middle);
      ratios.push_back(regret.left() / regret.middle);
    }
  }
  const auto count = static_cast<double>(std::max<std::int64_t>(1, summary.num_acts));
  for (double* mean : {&summary.planned, &summary.realised, &summary.best, &summary.slack}) *mean /= count;
  summary.median_left = median_of(std::move(lefts));
  summary.median_middle = median_of(std::move(middles));
  summary.median_ratio = median_of(std::move(ratios));
  return summary;
}

std::string csv_of(const KvRegretOptions& options, const std::vector<Window>& windows) {
  std::string out = "policy,window,tokens,budget,planned,realised,best,left,middle,slack\n";
  for (const Window& window : windows) {
    for (const eval::KvPlanTrial& trial : window.trials) {
      const eval::KvPlanRegret& regret = trial.regret;
      out += fmt::format("{},{},{},{},{:.6g}", options.policy, window.index, trial.num_tokens, trial.budget, regret.planned);
      out += trial.is_known ? fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g},{:.6g}\n", regret.realised, regret.best, regret.left(),
                                          regret.middle, regret.slack())
                            : ",,,,,\n";
    }
  }
  return out;
}

int print_summaries(const std::vector<RegretSummary>& summaries, bool as_json, int exit_code) {
  if (!as_json) {
    print("budget  acts  planned  realised    best  left (median)  middle  left/middle  left <= middle  with slack\n");
    for (const RegretSummary& s : summaries) {
      print(fmt::format("{:5.1f}%  {:4}  {:7.4f}   {:7.4f}  {:6.4f}  {:13.5f}  {:6.4f}  {:11.3f}  {:>6} of {:<5}  {} of {}\n", 100 * s.budget,
                        s.num_acts, s.planned, s.realised, s.best, s.median_left, s.median_middle, s.median_ratio, s.num_bounded,
                        s.num_acts, s.num_bounded_with_slack, s.num_acts));
    }
    return finish_output(exit_code);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().key("budgets").begin_array();
  for (const RegretSummary& s : summaries) {
    json.begin_object()
        .member("budget", s.budget)
        .member("acts", s.num_acts)
        .member("planned", s.planned)
        .member("realised", s.realised)
        .member("best", s.best)
        .member("slack", s.slack)
        .member("left_median", s.median_left)
        .member("middle_median", s.median_middle)
        .member("ratio_median", s.median_ratio)
        .member("bounded", s.num_bounded)
        .member("bounded_with_slack", s.num_bounded_with_slack)
        .end_object();
  }
  json.end_array().end_object();
  return print_document(std::move(out), exit_code);
}

Result<std::vector<std::vector<TokenId>>> windows_of(const KvRegretOptions& options, const EngineConfig& config,
                                                     const GlobalOptions& globals, const std::string& text, Interruption& interruption) {
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  KVASIR_TRY(auto windows, eval::cut_windows(*session.engine->tokenizer(), text, kRegretWindowTokens, options.first_window + options.num_windows));
  if (std::ssize(windows) <= options.first_window) {
    return make_error(ErrorKind::kUnmet, fmt::format("--windows-from {}: the text has {} windows of {} tokens", options.first_window,
                                                     windows.size(), kRegretWindowTokens), "windows-from");
  }
  windows.erase(windows.begin(), windows.begin() + options.first_window);
  return windows;
}

// A bound that holds by algebra and does not is a bug of ours: exit code 1.
Result<int> measure_regret(const KvRegretOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const std::string text, read_input_file(options.file));  // a pipe may let it wait: signals end it
  if (!options.acts.empty()) KVASIR_CHECKED(can_replace_text_file(options.acts));
  Interruption interruption;
  const EngineOptions engine = {.ctx_tokens = kRegretWindowTokens,
                                .max_num_seqs = 1,
                                .max_num_batched_tokens = eval::kKvStepTokens,
                                .no_prefix_cache = true};
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  KVASIR_TRY(const auto texts, windows_of(options, config, globals, text, interruption));
  KVASIR_TRY(config.model_path, store::resolve_model(options.model));
  ProgressReporter progress({.quiet = globals.quiet});
  auto trials = eval::try_kv_plans(config, texts, {.budgets = options.budgets, .uses_network = options.policy == "ladder-learned"},
                                   [&](double done) { progress.report_fraction("plans", done); }, interruption.keep_going());
  progress.clear();
  if (!trials && trials.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!trials) return std::unexpected(trials.error());
  std::vector<Window> windows;
  for (std::size_t i = 0; i < trials->size(); ++i) {
    windows.push_back({options.first_window + static_cast<std::int32_t>(i), std::move((*trials)[i])});
  }
  if (!options.acts.empty()) KVASIR_CHECKED(replace_text_file(options.acts, csv_of(options, windows)));
  std::vector<RegretSummary> summaries;
  for (const double budget : options.budgets) summaries.push_back(summary_of(windows, budget));
  const bool holds = std::ranges::all_of(summaries, [](const RegretSummary& s) { return s.num_bounded_with_slack == s.num_acts; });
  return print_summaries(summaries, globals.json, holds ? kExitDone : kExitNo);
}

}  // namespace

void add_eval_kv_regret(CLI::App& eval, Context& context) {
  const auto options = std::make_shared<KvRegretOptions>();
  CLI::App* verb = eval.add_subcommand("kv-regret", "Compare a KV policy's plans with those that know which attention comes");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--file", options->file, "The text to read")->required();
  verb->add_option("--policy", options->policy, "Whose forecast plans")->check(one_of({"ladder-priced", "ladder-learned"}))->capture_default_str();
  verb->add_option("--budgets", options->budgets, "Shares of the bytes of an f16 cache, with commas")
      ->delimiter(',')
      ->check(finite_number())
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  verb->add_option("--windows", options->num_windows, "Windows of 2048 tokens")->transform(whole_number(1, 10000))->capture_default_str();
  verb->add_option("--windows-from", options->first_window, "Begin behind so many of them, which something was tuned on")
      ->transform(whole_number(0, 10000))
      ->capture_default_str();
  verb->add_option("--acts", options->acts, "File (CSV) for the costs of each act");
  on_chosen(*verb, context, [options, &context] { return measure_regret(*options, context.options); });
}

}  // namespace kvasir::cli
