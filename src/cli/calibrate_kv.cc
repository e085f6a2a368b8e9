// kvasir calibrate-kv: which KV formats suit a model, measured once and kept beside it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "base/text_file.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "eval/key_components.h"
#include "eval/kv_calibrate.h"
#include "eval/kv_cost_curve.h"
#include "eval/kv_forecast_training.h"
#include "eval/kv_plan_trials.h"
#include "eval/kv_text.h"
#include "eval/own_text.h"
#include "eval/windows.h"
#include "io/kv_calibration.h"
#include "io/model_fingerprint.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct CalibrateOptions {
  std::string model;
  std::vector<std::string> files;
  std::int32_t num_windows = 1;
  bool learns_forecast = false;
  std::int32_t num_forecast_windows = 16;
  bool measures_budgets = false;
  std::int32_t num_cost_windows = 4;
};

// The forecast, and the divergence at 20% of the bytes on a text that it was not learned from.
struct ForecastResult {
  eval::LearnedKvForecast learned;
  std::size_t num_windows = 0;
  double kl_ladder = 0.0, kl_decayed_mass = 0.0, kl_learned = 0.0, seconds = 0.0;
};

constexpr std::int32_t kCalibrationWindowTokens = 896;
// Windows of the same length behind the calibration windows, which the statistics of keys are taken from: no format is
// measured on the text that made it.
constexpr std::int32_t kMostKeyWindows = 12;
constexpr std::int32_t kOwnTextsAtOnce = 16, kOwnTextTokens = 1536;

// Heads that matter are few: how many carry so much of all weight.
constexpr double kMostWeight = 0.8;

std::size_t num_heads_that_matter(std::vector<double> weights) {
  std::ranges::sort(weights, std::ranges::greater());
  double sum = 0.0;
  std::size_t count = 0;
  while (count < weights.size() && sum < kMostWeight * static_cast<double>(weights.size())) {
    sum += weights[count++];
  }
  return count;
}

void write_forecast(JsonWriter& json, const ForecastResult& forecast) {
  json.key("forecast")
      .begin_object()
      .member("windows", forecast.num_windows)
      .member("rows", forecast.learned.num_rows)
      .member("loss", forecast.learned.held_out_loss)
      .member("loss_of_mean", forecast.learned.mean_loss)
      .member("kl_ladder_20", forecast.kl_ladder)
      .member("kl_decayed_mass_20", forecast.kl_decayed_mass)
      .member("kl_learned_20", forecast.kl_learned)
      .member("seconds", forecast.seconds)
      .end_object();
}

void write_curve(JsonWriter& json, const io::KvCostCurve& curve) {
  json.key("cost_curve");
  io::write_cost_curve(json, curve);
}

void print_curve(const io::KvCostCurve& curve) {
  print(fmt::format("{}, {} windows: KL is about {:.4f} + {:.3f} x planned cost\n", curve.policy, curve.num_windows, curve.least_kl,
                    curve.kl_per_cost));
  print("budget  planned cost  KL from full  perplexity\n");
  for (const io::KvCostCurve::Point& point : curve.points) {
    print(fmt::format("{:5.1f}%  {:12.4f}  {:.2e}      x{:.4f} to {:.4f}\n", 100 * point.budget, point.planned, point.kl, point.ratio_low,
                      point.ratio_high));
  }
}

int print_results(const std::vector<eval::KvFormatMeasurement>& formats, const std::vector<double>& weights,
                  const std::optional<ForecastResult>& forecast, const io::KvCostCurve* curve, const std::string& path,
                  const GlobalOptions& globals) {
  if (!globals.json) {
    print("format  bytes   KL from full  perplexity  cost\n");
    for (const eval::KvFormatMeasurement& format : formats) {
      print(fmt::format("{:6}  {:4.1f}%  {:.2e}      x{:.4f}     {:.4f}\n", format.format,
                        100 * format.bytes_share, format.kl, format.ratio, format.cost));
    }
    if (formats.back().format != "k2pv2") print("k2pv2 was left out: the text is too short for it, or the model's heads do not suit it\n");
    if (!weights.empty()) {
      print(fmt::format("{} of {} KV heads carry {:.0f}% of what coarse cells cost\n",
                        num_heads_that_matter(weights), weights.size(), 100 * kMostWeight));
    }
    if (forecast) {
      print(fmt::format("forecast: of {} windows in {:.0f} s; KL at 20% of the bytes, on a window that it was not learned from: "
                        "{:.4f}, ladder-priced {:.4f}, ladder {:.4f}\n",
                        forecast->num_windows, forecast->seconds, forecast->kl_learned, forecast->kl_decayed_mass, forecast->kl_ladder));
    }
    if (curve != nullptr) print_curve(*curve);
    print(fmt::format("kept in {}\n", path));
    return finish_output(kExitDone);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("file", path).key("formats").begin_array();
  for (const eval::KvFormatMeasurement& format : formats) {
    json.begin_object()
        .member("format", format.format)
        .member("bytes_share", format.bytes_share)
        .member("kl", format.kl)
        .member("ppl_ratio", format.ratio)
        .member("cost", format.cost)
        .end_object();
  }
  json.end_array().key("head_weights").begin_array();
  for (const double weight : weights) json.value(weight);
  json.end_array();
  if (forecast) write_forecast(json, *forecast);
  if (curve != nullptr) write_curve(json, *curve);
  json.end_object();
  return print_document(std::move(out), kExitDone);
}

// A forecast that was learned of the same model stays, and what budgets cost with the same costs of formats and weights.
void keep_what_holds(const std::string& path, io::KvCalibration& calibration) {
  const auto earlier = io::read_kv_calibration(path);
  if (!earlier || !*earlier || (*earlier)->model != calibration.model) return;
  calibration.forecast = (*earlier)->forecast;
  if ((*earlier)->costs == calibration.costs && (*earlier)->head_weights == calibration.head_weights) {
    calibration.cost_curve = (*earlier)->cost_curve;
  }
}

// That of --file where the model writes the text.
constexpr const char* kSelf = "self";

struct NamedText {
  std::string file, text;
  std::vector<TokenId> own_ids;  // of kSelf, instead of a text
};
using Windows = std::vector<std::vector<TokenId>>;

// The texts of --file in their order; that of kSelf is written later.
Result<std::vector<NamedText>> read_texts(const CalibrateOptions& options) {
  if (std::ranges::count(options.files, kSelf) > 1) return make_error(ErrorKind::kUsage, "--file: self may be given once", "file");
  std::vector<NamedText> texts;
  for (const std::string& file : options.files) {
    std::string text;
    if (file != kSelf) {
      KVASIR_TRY(text, read_input_file(file));  // a pipe may let it wait: signals end it
    }
    texts.push_back({file, std::move(text), {}});
  }
  return texts;
}

// As many as the windows take that are cut from one text of several.
std::int64_t num_own_tokens(const CalibrateOptions& options) {
  const auto share = [&](std::int32_t num_windows, std::int32_t tokens) {
    const auto num_files = static_cast<std::int32_t>(options.files.size());
    return std::int64_t{tokens} * ((num_windows + num_files - 1) / num_files);
  };
  return std::max({share(options.num_windows + kMostKeyWindows, kCalibrationWindowTokens),
                   options.learns_forecast ? share(options.num_forecast_windows, eval::kForecastWindowTokens) : 0,
                   options.measures_budgets ? share(options.num_cost_windows, eval::kForecastWindowTokens) : 0});
}

// Gives kSelf its tokens.
Status write_own_text(const CalibrateOptions& options, const std::string& model, const GlobalOptions& globals,
                      std::vector<NamedText>& texts, ProgressReporter& progress, Interruption& interruption) {
  const auto self = std::ranges::find(texts, kSelf, &NamedText::file);
  if (self == texts.end()) return {};
  // Where no longer windows are read, the model need not reach farther.
  const std::int32_t text_tokens = options.learns_forecast || options.measures_budgets ? kOwnTextTokens : kCalibrationWindowTokens;
  KVASIR_TRY(EngineConfig config, make_engine_config({.ctx_tokens = text_tokens, .max_num_seqs = kOwnTextsAtOnce}, globals));
  config.model_path = model;
  config.kv_calibration = config.kv_key_components = false;
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  KVASIR_TRY(self->own_ids, eval::write_own_text(*session.engine, num_own_tokens(options), text_tokens, interruption.keep_going(),
                                                 [&](double done) { progress.report_fraction("writing", done); }));
  return {};
}

// At most so many, the first of each text, then the second, and so on.
Result<Windows> cut_in_turn(const Engine& engine, const std::vector<NamedText>& texts, std::int32_t ctx_tokens, std::int32_t max_windows) {
  std::vector<Windows> of_texts;
  const text::Tokenizer& tokenizer = *engine.tokenizer();
  for (const auto& [file, text, own_ids] : texts) {
    auto windows = own_ids.empty() ? eval::cut_windows(tokenizer, text, ctx_tokens, max_windows)
                                   : eval::cut_windows(tokenizer, own_ids, ctx_tokens, max_windows);
    if (!windows) {
      return make_error(windows.error().kind, fmt::format("{}: {}", printable_line(file), windows.error().message), "file");
    }
    of_texts.push_back(*std::move(windows));
  }
  Windows in_turn;
  for (std::size_t i = 0; i < static_cast<std::size_t>(max_windows); ++i) {
    for (Windows& windows : of_texts) {
      if (i < windows.size() && std::ssize(in_turn) < max_windows) in_turn.push_back(std::move(windows[i]));
    }
  }
  return in_turn;
}

Result<Windows> cost_windows(const CalibrateOptions& options, const Engine& engine, const std::vector<NamedText>& texts) {
  if (!options.measures_budgets) return Windows();
  KVASIR_TRY(Windows windows, cut_in_turn(engine, texts, eval::kForecastWindowTokens, options.num_cost_windows));
  if (windows.size() >= 2) return windows;
  return make_error(ErrorKind::kUnmet, fmt::format("cost curve: the text has 1 window of {} tokens, at least 2 are needed", eval::kForecastWindowTokens), "file");
}

Result<Windows> forecast_windows(const CalibrateOptions& options, const Engine& engine, const std::vector<NamedText>& texts) {
  Windows windows;
  if (!options.learns_forecast) return windows;
  KVASIR_TRY(windows, cut_in_turn(engine, texts, eval::kForecastWindowTokens, options.num_forecast_windows));
  if (windows.size() >= 2) return windows;
  return make_error(ErrorKind::kUnmet, fmt::format("forecast: the text has 1 window of {} tokens, at least 2 are needed", eval::kForecastWindowTokens), "file");
}

// The engine takes windows of kForecastWindowTokens.
Result<EngineConfig> config_of_long_windows(const GlobalOptions& globals, const std::string& model) {
  const EngineOptions engine = {.ctx_tokens = eval::kForecastWindowTokens + eval::kKvStepTokens,
                                .max_num_seqs = 1,
                                .max_num_batched_tokens = eval::kKvStepTokens,
                                .no_prefix_cache = true,
                                .no_prefill_only = true};
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  config.model_path = model;
  return config;
}

// Behind the measurements, which stand in the file already, so that plans count with them.
Status measure_budgets(const CalibrateOptions& options, const GlobalOptions& globals, const std::string& model,
                       const std::vector<std::vector<TokenId>>& windows, ProgressReporter& progress, Interruption& interruption,
                       io::KvCalibration& calibration) {
  KVASIR_TRY(const EngineConfig config, config_of_long_windows(globals, model));
  const eval::KvPlanOptions plans = {.budgets = {eval::kCostBudgets.begin(), eval::kCostBudgets.end()}};
  KVASIR_TRY(const auto trials, eval::try_kv_plans(config, windows, plans, [&](double done) { progress.report_fraction("plans", done); },
                                                   interruption.keep_going()));
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  KVASIR_TRY(calibration.cost_curve, eval::measure_cost_curve(*session.engine, windows, trials,
                                                              [&](double done) { progress.report_fraction("budgets", done); },
                                                              interruption.keep_going()));
  return io::write_kv_calibration(io::kv_calibration_path(model), calibration);
}

// Behind the measurements, which stand in the file already.
Result<ForecastResult> learn_forecast(const CalibrateOptions& options, const GlobalOptions& globals, const std::string& model,
                                      const Windows& windows, ProgressReporter& progress,
                                      Interruption& interruption, io::KvCalibration& calibration) {
  const auto begin = std::chrono::steady_clock::now();
  KVASIR_TRY(EngineConfig config, config_of_long_windows(globals, model));
  config.kv_calibration = false;
  ForecastResult result;
  KVASIR_TRY(result.learned, eval::train_kv_forecast(config, windows, [&](double done) { progress.report_fraction("forecast", done); },
                                                     interruption.keep_going()));
  result.num_windows = windows.size() - 1;
  calibration.forecast = result.learned.numbers;
  KVASIR_CHECKED(io::write_kv_calibration(io::kv_calibration_path(model), calibration));
  config.kv_calibration = true;
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  const std::vector<TokenId>& held_out = windows.back();
  KVASIR_TRY(const auto full, eval::score_full_cache(*session.engine, eval::kStreaming, held_out, interruption.keep_going()));
  for (const auto& [policy, kl] : {std::pair("ladder", &result.kl_ladder), std::pair("ladder-priced", &result.kl_decayed_mass),
                                   std::pair("ladder-learned", &result.kl_learned)}) {
    KVASIR_TRY(const eval::KvRow row, eval::measure_kv_policy(*session.engine, eval::kStreaming, held_out, full,
                                                              {.policy = policy, .budget = 0.2}, interruption.keep_going()));
    *kl = row.kl;
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

struct CutTexts {
  Windows calibration, keys, forecast, budgets;
};

Result<CutTexts> cut_texts(const CalibrateOptions& options, const EngineConfig& config, const GlobalOptions& globals,
                           const std::vector<NamedText>& texts, Interruption& interruption) {
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  CutTexts cut;
  KVASIR_TRY(cut.calibration, cut_in_turn(*session.engine, texts, kCalibrationWindowTokens, options.num_windows + kMostKeyWindows));
  const auto num_kept = std::min(cut.calibration.size(), static_cast<std::size_t>(options.num_windows));
  cut.keys.assign(cut.calibration.begin() + static_cast<std::ptrdiff_t>(num_kept), cut.calibration.end());
  cut.calibration.resize(num_kept);
  KVASIR_TRY(cut.forecast, forecast_windows(options, *session.engine, texts));
  KVASIR_TRY(cut.budgets, cost_windows(options, *session.engine, texts));
  return cut;
}

Result<int> calibrate(const CalibrateOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(std::vector<NamedText> texts, read_texts(options));
  Interruption interruption;
  KVASIR_TRY(const std::string model, store::resolve_model(options.model));
  const EngineOptions engine = {.ctx_tokens = kCalibrationWindowTokens,
                                .max_num_seqs = 1,
                                .max_num_batched_tokens = eval::kKvStepTokens,
                                .no_prefix_cache = true};
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  config.model_path = model;
  config.kv_calibration = config.kv_key_components = false;  // existing files may be broken, and will be replaced
  const std::string path = io::kv_calibration_path(model);
  KVASIR_CHECKED(can_replace_text_file(path));
  ProgressReporter progress({.quiet = globals.quiet});
  const Status written = write_own_text(options, model, globals, texts, progress, interruption);
  if (!written && written.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  KVASIR_CHECKED(written);
  KVASIR_TRY(const CutTexts cut, cut_texts(options, config, globals, texts, interruption));
  const auto& [windows, of_keys, of_forecast, of_budgets] = cut;
  const auto num_heads = eval::measure_key_components(config, of_keys, [&](double done) { progress.report_fraction("keys", done); },
                                                      interruption.keep_going());
  if (!num_heads && num_heads.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!num_heads) return std::unexpected(num_heads.error());
  config.kv_key_components = *num_heads > 0;
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  const auto formats = eval::measure_kv_formats(
      *session.engine, config.kv_key_components, windows, [&](double done) { progress.report_fraction("formats", done); },
      interruption.keep_going());
  if (!formats && formats.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!formats) return std::unexpected(formats.error());
  const auto weights = eval::weigh_kv_heads(
      *session.engine, windows.front(), [&](double done) { progress.report_fraction("heads", done); },
      interruption.keep_going());
  if (!weights && weights.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!weights) return std::unexpected(weights.error());
  progress.clear();
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model));
  io::KvCalibration calibration{.model = fingerprint, .head_weights = *weights};
  for (const eval::KvFormatMeasurement& format : *formats) calibration.costs[format.format] = format.cost;
  keep_what_holds(path, calibration);
  KVASIR_CHECKED(io::write_kv_calibration(path, calibration));
  std::optional<ForecastResult> forecast;
  if (options.learns_forecast) {
    auto learned = learn_forecast(options, globals, model, of_forecast, progress, interruption, calibration);
    if (!learned && learned.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
    if (!learned) return std::unexpected(learned.error());
    forecast = *std::move(learned);
    progress.clear();
  }
  if (options.measures_budgets) {
    const Status measured = measure_budgets(options, globals, model, of_budgets, progress, interruption, calibration);
    if (!measured && measured.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
    if (!measured) return std::unexpected(measured.error());
    progress.clear();
  }
  return print_results(*formats, *weights, forecast, options.measures_budgets ? &calibration.cost_curve : nullptr, path, globals);
}

}  // namespace

void add_calibrate_kv(CLI::App& app, Context& context) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* verb = app.add_subcommand(
      "calibrate-kv", "Calibrate KV-cache compression for a model");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--file", options->files,
                   "Calibration text, of a kind that the model is good at, or self: what the model writes; again for more kinds, whose "
                   "windows come in turn")
      ->take_all()
      ->expected(1)
      ->required();
  verb->add_option("--windows", options->num_windows,
                   "Calibration windows of 896 tokens, each also with its beginning repeated")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  verb->add_flag("--forecast", options->learns_forecast,
                 "Learn a forecast of attention for the policy ladder-learned as well, from windows of 1920 tokens");
  verb->add_option("--forecast-windows", options->num_forecast_windows, "Most such windows; the last one judges")
      ->transform(whole_number(2, 1000))
      ->capture_default_str();
  verb->add_flag("--cost-curve", options->measures_budgets,
                 "Measure what budgets from 50 to 10% cost as well, for kvasir plan, on windows of 1920 tokens");
  verb->add_option("--cost-windows", options->num_cost_windows, "Most such windows")->transform(whole_number(2, 1000))->capture_default_str();
  on_chosen(*verb, context, [options, &context] { return calibrate(*options, context.options); });
}

}  // namespace kvasir::cli
