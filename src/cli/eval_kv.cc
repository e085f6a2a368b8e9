#include "cli/eval_kv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
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
#include "eval/kv_needle.h"
#include "eval/kv_report.h"
#include "eval/kv_row.h"
#include "eval/kv_summary.h"
#include "eval/kv_text.h"
#include "eval/kv_true_future.h"
#include "eval/windows.h"
#include "io/key_components_file.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "journal/log_reader.h"
#include "store/model_store.h"
#include "store/sha256.h"

namespace kvasir::cli {
namespace {

struct KvEvalOptions {
  std::string model;
  std::string file;
  std::string report;
  std::vector<std::string> policies = {"ladder"};
  std::vector<double> budgets = {0.5, 0.4, 0.3, 0.25};
  std::vector<std::string> suites = {"ppl", "needle"};
  std::int32_t num_windows = 20, num_long_windows = 6, long_window_tokens = 4096;
  std::int32_t first_window = 0;  // of kWindowTokens
  std::vector<std::int32_t> needle_tokens = {512, 1024, 2048, 4096, 8192};
  std::vector<double> max_lost_shares = {1.0};
  bool gate = false;
  EngineOptions engine = {.max_num_seqs = 1,
                          .max_num_batched_tokens = eval::kKvStepTokens,
                          .no_prefix_cache = true,
                          .no_prefill_only = true};  // the full cache takes the policies' steps
};

constexpr std::int32_t kWindowTokens = 2048;
// The suites that `ppl` stands for.
constexpr std::array kTextProtocols = {eval::kCompressThenScore, eval::kStreaming};
constexpr std::array kNeedleKinds = {eval::kLateNeedle, eval::kAwareNeedle, eval::kManyNeedles,
                                     eval::kLiveNeedle, eval::kRecall};
// The suites that `needle` stands for.
constexpr std::array kGateNeedles = {eval::kLateNeedle.suite, eval::kAwareNeedle.suite,
                                     eval::kManyNeedles.suite};
constexpr int kNumDepths = 11;
constexpr std::size_t kMaxCalibrationBytes = std::size_t{1} << 24;

// One window or needle, to be measured under every policy and budget.
struct Case {
  std::string suite;
  std::int32_t ctx_tokens = 0;
  std::int32_t item = 0;
  // Measures what is given; the full cache's part is done once.
  std::function<Result<eval::KvRow>(const KvParams& kv)> measure;
};

std::string short_hash(const std::string& bytes) {
  store::Sha256 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  return hash.hex_digest().substr(0, 12);
}

class KvEvaluation {
 public:
  KvEvaluation(const KvEvalOptions& options, const GlobalOptions& globals, std::string text)
      : options_(options), globals_(globals), text_(std::move(text)) {}

  Result<int> run() {
    KVASIR_CHECKED(open());
    for (const std::string& suite : options_.suites) {
      KVASIR_CHECKED(add(suite));
    }
    const Status status = measure();
    if (!status && status.error().kind != ErrorKind::kCancelled) return std::unexpected(status.error());
    progress_.clear();
    session_ = {};  // the log is whole when its engine is gone
    return report();
  }

 private:
  Status open() {
    KVASIR_TRY(const EngineConfig config, make_engine_config(options_.engine, globals_));
    if (!config.kv_forecast_path.empty() && std::ranges::count(options_.policies, "ladder-learned") == 0) {
      return make_error(ErrorKind::kUsage, "--kv-forecast: it changes nothing without ladder-learned among --policies", "kv-forecast");
    }
    std::error_code failure;
    std::filesystem::create_directories(options_.report, failure);
    if (failure) {
      return make_error(ErrorKind::kMachine,
                        fmt::format("--report: {}: {}", options_.report, failure.message()));
    }
    KVASIR_TRY(const std::string subject, subject_of(text_));
    KVASIR_TRY(auto rows, eval::KvRowFile::open(options_.report + "/rows.csv", subject));
    rows_.emplace(std::move(rows));
    KVASIR_TRY(session_, open_text_session(options_.model, config, globals_, &interruption_.signals(),
                                           options_.engine.kv_log));
    max_tokens_ = session_.engine->model_info().max_model_len_tokens;
    return std::ranges::count(options_.policies, eval::KvTrueFuture::kPolicy) > 0 ? open_true_future(config) : Status{};
  }

  Status open_true_future(EngineConfig config) {
    KVASIR_TRY(config.model_path, store::resolve_model(options_.model));
    KVASIR_TRY(true_future_, eval::KvTrueFuture::open(config));
    return {};
  }

  // The subject of rows: names for people, and hashes that tell whether a file behind a name has changed.
  Result<std::string> subject_of(const std::string& text) const {
    KVASIR_TRY(const std::string model, store::resolve_model(options_.model));
    KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model));
    const auto calibration = read_text_file(io::kv_calibration_path(model), kMaxCalibrationBytes);
    const auto keys = read_text_file(io::key_components_path(model), kMaxCalibrationBytes);
    const auto forecast = read_text_file(options_.engine.kv_forecast, kMaxCalibrationBytes);
    return fmt::format("weights {}, calibration {}{}{}, text {}, at most {} lost: {} on {}", fingerprint,
                       calibration ? short_hash(*calibration) : "none", keys ? ", keys " + short_hash(*keys) : "", forecast ? ", forecast " + short_hash(*forecast) : "", short_hash(text),
                       fmt::join(options_.max_lost_shares, "/"),
                       options_.model, options_.file);
  }

  Status add(std::string_view suite) {
    for (const eval::KvProtocol& protocol : kTextProtocols) {
      if (suite == "ppl" || suite == protocol.suite) KVASIR_CHECKED(add_text(protocol));
    }
    for (const eval::NeedleKind& kind : kNeedleKinds) {
      const bool is_meant =
          suite == kind.suite || (suite == "needle" && std::ranges::count(kGateNeedles, kind.suite) > 0);
      if (is_meant) KVASIR_CHECKED(add_needles(kind));
    }
    return {};
  }

  Status add_text(const eval::KvProtocol& protocol) {
    for (const auto& [ctx, count] : {std::pair{kWindowTokens, options_.num_windows},
                                     std::pair{options_.long_window_tokens, options_.num_long_windows}}) {
      if (count == 0 || ctx > session_.engine->model_info().max_model_len_tokens) continue;
      const std::int32_t first = (options_.first_window * kWindowTokens + ctx - 1) / ctx;
      KVASIR_TRY(auto windows, eval::cut_windows(*session_.engine->tokenizer(), text_, ctx, first + count));
      if (std::ssize(windows) <= first) {
        return make_error(ErrorKind::kUnmet, fmt::format("--windows-from {}: the text has {} windows of {} tokens", options_.first_window,
                                                         windows.size(), ctx), "windows-from");
      }
      for (auto i = static_cast<std::size_t>(first); i < windows.size(); ++i) add_window(protocol, i, windows[i]);
    }
    return {};
  }

  void add_window(const eval::KvProtocol& protocol, std::size_t index, const std::vector<TokenId>& window) {
    auto full = std::make_shared<std::optional<eval::FullCacheScore>>();
    cases_.push_back({std::string(protocol.suite), static_cast<std::int32_t>(window.size()),
                      static_cast<std::int32_t>(index),
                      [this, protocol, window, full](const KvParams& kv) -> Result<eval::KvRow> {
                        Engine& engine = *session_.engine;
                        if (!*full) {
                          KVASIR_TRY(auto score,
                                     eval::score_full_cache(engine, protocol, window, keep_going_));
                          full->emplace(std::move(score));
                        }
                        const bool knows_future = kv.policy == eval::KvTrueFuture::kPolicy;
                        if (knows_future) KVASIR_CHECKED(true_future_->read(window, keep_going_));
                        return eval::measure_kv_policy(engine, protocol, window, **full, kv, keep_going_);
                      }});
  }

  Status add_needles(const eval::NeedleKind& kind) {
    const text::Tokenizer& tokenizer = *session_.engine->tokenizer();
    KVASIR_TRY(const eval::ChatFrame frame, eval::chat_frame(*session_.engine));
    const std::vector<TokenId> text = tokenizer.encode(text_, {.add_special = false});
    for (const std::int32_t ctx : options_.needle_tokens) {
      if (ctx > session_.engine->model_info().max_model_len_tokens) continue;
      for (int depth = 0; depth < kNumDepths; ++depth) {
        KVASIR_TRY(auto needle, eval::make_needle(tokenizer, frame, text, kind, ctx,
                                                  static_cast<double>(depth) / (kNumDepths - 1)));
        add_needle(kind, ctx, depth, std::move(needle));
      }
    }
    return {};
  }

  void add_needle(const eval::NeedleKind& kind, std::int32_t ctx, int depth, eval::Needle needle) {
    auto full = std::make_shared<std::optional<bool>>();
    cases_.push_back({std::string(kind.suite), ctx, depth,
                      [this, suite = std::string(kind.suite), ctx, needle = std::move(needle),
                       full](const KvParams& kv) -> Result<eval::KvRow> {
                        Engine& engine = *session_.engine;
                        if (!*full) {
                          KVASIR_TRY(const auto run, eval::run_needle(engine, needle, {}, keep_going_));
                          full->emplace(run.is_found);
                        }
                        eval::KvRow row{.suite = suite, .ctx_tokens = ctx, .policy = kv.policy};
                        row.budget = kv.budget;
                        row.full_found = **full ? 1 : 0;
                        if (!**full) return row;  // no policy can keep a needle that the full cache loses
                        KVASIR_TRY(const auto run, eval::run_needle(engine, needle, kv, keep_going_));
                        row.found = run.is_found ? 1 : 0;
                        row.bytes_share = run.usage.kv_bytes_share;
                        row.bytes_share_peak = run.usage.kv_bytes_share_peak;
                        return row;
                      }});
  }

  // A policy under one bound, and what its rows call it.
  struct Variant {
    std::string name, policy;
    double max_lost_share = 1.0;
  };
  std::vector<Variant> variants() const {
    std::vector<Variant> all;
    for (const std::string& policy : options_.policies) {
      for (const double share : options_.max_lost_shares) {
        const bool is_only = options_.max_lost_shares.size() == 1;
        all.push_back({is_only ? policy : fmt::format("{}-lost-{}", policy, share), policy, share});
      }
    }
    return all;
  }

  Status measure() {
    const std::vector<Variant> all = variants();
    const double total = static_cast<double>(cases_.size() * all.size() * options_.budgets.size());
    double done = 0;
    for (Case& one : cases_) {
      for (const Variant& variant : all) {
        for (const double budget : options_.budgets) {
          progress_.report_fraction(fmt::format("{} {} {}", one.suite, one.ctx_tokens, variant.name),
                                    done++ / total);
          if (rows_->has({one.suite, one.ctx_tokens, one.item, variant.name, budget})) continue;
          KVASIR_TRY(eval::KvRow row, one.measure({.policy = variant.policy,
                                                   .budget = budget,
                                                   .quality = KvQuality::kBestEffort,
                                                   .max_lost_share = variant.max_lost_share,
                                                   .seed = static_cast<std::uint64_t>(one.item)}));
          row.item = one.item;
          row.policy = variant.name;
          KVASIR_CHECKED(rows_->add(std::move(row)));
        }
      }
      one.measure = nullptr;  // and with it what the full cache said
    }
    return {};
  }

  // The forecasts in the log of this run.
  Result<std::vector<eval::ForecastPoint>> forecasts() const {
    std::vector<eval::ForecastPoint> points;
    if (options_.engine.kv_log.empty()) return points;
    KVASIR_TRY(journal::LogReader log, journal::LogReader::open(options_.engine.kv_log));
    KVASIR_TRY(const auto bins, log.forecasts());
    for (const journal::ForecastBin& bin : bins) {
      points.push_back({fmt::format("{} {:.3g}%", bin.policy, 100 * bin.budget_share), bin.mean_forecast,
                        bin.mean_realised, bin.num_cells});
    }
    return points;
  }

  Result<int> report() {
    const std::vector<eval::KvSummary> summaries = eval::summarise(rows_->rows());
    std::vector<eval::KvClaim> claims;
    if (options_.gate) {
      const std::vector<eval::KvSummary> asked_for = summaries_asked_for(summaries);
      claims = eval::check_gate(asked_for);
      for (const Variant& variant : variants()) {
        std::ranges::move(eval::missing_from_gate(asked_for, variant.name, max_tokens_),
                          std::back_inserter(claims));
      }
    }
    const bool holds = std::ranges::all_of(claims, &eval::KvClaim::holds);
    const int exit_code = holds || interruption_.requested() ? interruption_.exit_code() : kExitNo;
    KVASIR_TRY(const auto points, forecasts());
    KVASIR_CHECKED(write_page(eval::kv_report(options_.model, rows_->rows(), summaries, claims, points)));
    if (globals_.json) return print_document(to_json(summaries, claims), exit_code);
    print(
        "suite          ctx   policy         budget  bytes  peak   "
        "ratio   (95% interval)     worst   KL        top-1   needles\n");
    for (const eval::KvSummary& s : summaries) print(to_line(s));
    for (const eval::KvClaim& claim : claims) {
      print(fmt::format("{} {}\n", claim.holds ? "holds " : "FAILS ", claim.text));
    }
    return finish_output(exit_code);
  }

  // The file may have rows of other policies and budgets, from earlier runs.
  std::vector<eval::KvSummary> summaries_asked_for(const std::vector<eval::KvSummary>& summaries) const {
    const std::vector<Variant> all = variants();
    std::vector<eval::KvSummary> asked_for;
    for (const eval::KvSummary& s : summaries) {
      if (std::ranges::find(all, s.policy, &Variant::name) != all.end() &&
          std::ranges::find(options_.budgets, s.budget) != options_.budgets.end()) {
        asked_for.push_back(s);
      }
    }
    return asked_for;
  }

  Status write_page(const std::string& page) const {
    const std::string path = options_.report + "/report.html";
    std::ofstream file(path, std::ios::binary);
    file << page;
    file.close();
    if (file) return {};
    return make_error(ErrorKind::kMachine, fmt::format("{}: cannot be written", path));
  }

  static std::string to_line(const eval::KvSummary& s) {
    std::string line = fmt::format("{:14} {:<5} {:14} {:5.1f}%  {:4.1f}%  {:4.1f}%  ", s.suite, s.ctx_tokens,
                                   s.policy, 100 * s.budget, 100 * s.bytes_share, 100 * s.bytes_share_peak);
    if (!s.is_text()) return line + fmt::format("{:>59} of {}\n", s.still_found, s.full_found);
    return line + fmt::format("{:.4f}  ({:.4f} to {:.4f})  {:.4f}  {:.2e}  {:.2f}%\n", s.ratio, s.ratio_low,
                              s.ratio_high, s.worst_ratio, s.kl, 100 * s.top1);
  }

  static std::string to_json(const std::vector<eval::KvSummary>& summaries,
                             const std::vector<eval::KvClaim>& claims) {
    std::string out;
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_object().key("results").begin_array();
    for (const eval::KvSummary& s : summaries) {
      json.begin_object()
          .member("suite", s.suite)
          .member("ctx", s.ctx_tokens)
          .member("policy", s.policy)
          .member("budget", s.budget)
          .member("items", s.num_items)
          .member("bytes_share", s.bytes_share)
          .member("bytes_share_peak", s.bytes_share_peak);
      if (s.is_text()) {
        json.member("ratio", s.ratio)
            .member("ratio_low", s.ratio_low)
            .member("ratio_high", s.ratio_high)
            .member("worst_ratio", s.worst_ratio)
            .member("kl", s.kl)
            .member("top1", s.top1);
      } else {
        json.member("full_found", s.full_found).member("still_found", s.still_found);
      }
      json.end_object();
    }
    json.end_array().key("gate").begin_array();
    for (const eval::KvClaim& claim : claims) {
      json.begin_object().member("claim", claim.text).member("holds", claim.holds).end_object();
    }
    json.end_array().end_object();
    return out;
  }

  const KvEvalOptions& options_;
  const GlobalOptions& globals_;
  Interruption interruption_;
  eval::KeepGoing keep_going_ = interruption_.keep_going();
  ProgressReporter progress_{{.quiet = globals_.quiet}};
  std::optional<eval::KvRowFile> rows_;
  ModelSession session_;
  std::unique_ptr<eval::KvTrueFuture> true_future_;  // where its policy is asked for
  std::string text_;
  std::int32_t max_tokens_ = 0;  // that the model takes
  std::vector<Case> cases_;
};

}  // namespace

void add_eval_kv(CLI::App& eval, Context& context) {
  auto options = std::make_shared<KvEvalOptions>();
  std::vector<std::string> policies = kv_policy_names();
  policies.emplace_back(eval::KvTrueFuture::kPolicy);
  CLI::App* verb = eval.add_subcommand("kv", "Compare KV-cache compression policies with the full cache");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--file", options->file, "The text to measure on")->required();
  verb->add_option("--report", options->report,
                   "Folder of the results; rows that are there are not measured again")
      ->required();
  verb->add_option("--policies", options->policies, "Policies, with commas; true-future knows the attention to come, on windows of text")
      ->delimiter(',')
      ->check(one_of(policies))
      ->capture_default_str();
  verb->add_option("--budgets", options->budgets, "Shares of the bytes of an f16 cache, with commas")
      ->delimiter(',')
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  std::vector<std::string> suites = {"ppl", "needle"};
  for (const eval::KvProtocol& protocol : kTextProtocols) suites.emplace_back(protocol.suite);
  for (const eval::NeedleKind& kind : kNeedleKinds) suites.emplace_back(kind.suite);
  verb->add_option("--suite", options->suites,
                   "What to measure, with commas; ppl is p1 and p2, needle is needle-late, -aware and -keys")
      ->delimiter(',')
      ->check(one_of(suites))
      ->capture_default_str();
  verb->add_option("--windows", options->num_windows, "Windows of 2048 tokens")
      ->transform(whole_number(0, 10000))
      ->capture_default_str();
  verb->add_option("--windows-from", options->first_window, "Begin behind so many of them, which something was tuned on")
      ->transform(whole_number(0, 10000))
      ->capture_default_str();
  verb->add_option("--long-windows", options->num_long_windows, "Windows of --long-window-tokens")
      ->transform(whole_number(0, 10000))
      ->capture_default_str();
  verb->add_option("--long-window-tokens", options->long_window_tokens, "Length of the long windows; a model of fewer tokens reads none")
      ->check(CLI::Range(1024, 1 << 20))
      ->capture_default_str();
  verb->add_option("--needle-tokens", options->needle_tokens,
                   "Lengths of the prompts that hide needles, with commas")
      ->delimiter(',')
      ->check(CLI::Range(512, 1 << 20))
      ->capture_default_str();
  verb->add_option("--kv-max-lost", options->max_lost_shares,
                   "Most attention that may be expected on what is dropped, per layer and head; several with "
                   "commas are compared")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_kv_forecast_option(*verb, options->engine);
  add_kv_log_option(*verb, options->engine.kv_log);
  verb->add_flag("--gate", options->gate, "Exit with 1 when the quality gate does not hold");
  on_chosen(*verb, context, [options, &context]() -> Result<int> {
    KVASIR_TRY(std::string text, read_input_file(options->file));  // a pipe may let it wait: signals end it
    return KvEvaluation(*options, context.options, std::move(text)).run();
  });
}

}  // namespace kvasir::cli
