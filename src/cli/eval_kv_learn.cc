#include "cli/eval_kv_learn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
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
#include "eval/kv_learning_replay.h"
#include "eval/windows.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct KvLearnOptions {
  std::string model, report, shadows, champion = "text";
  std::vector<std::string> files;
  std::int32_t num_windows = 560, num_champion_windows = 60, num_sequences = 500, num_seeds = 5, num_unshifted = 100;
};

// One kind of traffic after another. Texts begin at two places half a window apart, so that a file gives twice as many.
Result<std::vector<std::vector<TokenId>>> texts_of(const std::string& text, const text::Tokenizer& tokenizer, std::int32_t count) {
  KVASIR_TRY(auto windows, eval::cut_windows(tokenizer, text, eval::kShadowWindowTokens, count));
  const std::size_t half = text.size() / windows.size() / 2;
  if (std::ssize(windows) >= count || half == 0) return windows;
  KVASIR_TRY(auto more, eval::cut_windows(tokenizer, std::string_view(text).substr(half), eval::kShadowWindowTokens,
                                          count - static_cast<std::int32_t>(windows.size())));
  std::ranges::move(more, std::back_inserter(windows));
  return windows;
}

Result<std::vector<std::vector<std::vector<TokenId>>>> traffic_of(const KvLearnOptions& options, const EngineConfig& config, const GlobalOptions& globals,
                                                                  Interruption& interruption) {
  std::vector<std::string> texts;
  for (const std::string& file : options.files) {
    KVASIR_TRY(texts.emplace_back(), read_input_file(file));
  }
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, config, globals, &interruption.signals()));
  std::vector<std::vector<std::vector<TokenId>>> traffic;
  for (const std::string& text : texts) {
    KVASIR_TRY(traffic.emplace_back(), texts_of(text, *session.engine->tokenizer(), options.num_windows));
  }
  return traffic;
}

constexpr std::string_view kCsvHead =
    "traffic,champion,seed,sequences,promoted_after,challengers,duel_ratio,log10_evidence,asked_ratio,asked_dropped_share,held_out_sequences,held_out_ratio\n";

std::string csv_row(const eval::LearningReplay& replay, const std::string& champion) {
  return fmt::format("{},{},{},{},{},{},{:.4f},{:.2f},{:.3f},{:.6f},{},{:.4f}\n", replay.is_shifted ? "after" : "before", champion, replay.seed, replay.num_sequences,
                     replay.promoted_after, replay.num_challengers, replay.duel_ratio, replay.log10_evidence, replay.asked_ratio, replay.asked_dropped_share,
                     replay.num_held_out, replay.held_out_ratio);
}

struct ReplayCount {
  std::int64_t num_replays = 0, num_promoted = 0, sequences_sum = 0;
  double held_out_sum = 0.0;

  void add(const eval::LearningReplay& replay) {
    ++num_replays;
    if (replay.promoted_after == 0) return;
    ++num_promoted;
    sequences_sum += replay.promoted_after;
    held_out_sum += replay.held_out_ratio;
  }
  double mean_sequences() const { return num_promoted > 0 ? static_cast<double>(sequences_sum) / static_cast<double>(num_promoted) : 0.0; }
  double mean_held_out() const { return num_promoted > 0 ? held_out_sum / static_cast<double>(num_promoted) : 1.0; }
};

int print_counts(const ReplayCount& before, const ReplayCount& after, bool as_json) {
  if (!as_json) {
    print("traffic  replays  promotions  after sequences  costs behind it\n");
    for (const auto& [name, count] : {std::pair("before", &before), std::pair("after", &after)}) {
      print(fmt::format("{:7}  {:7}  {:10}  {:15.0f}  {:15.3f}\n", name, count->num_replays, count->num_promoted, count->mean_sequences(),
                        count->mean_held_out()));
    }
    return finish_output(kExitDone);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object();
  for (const auto& [name, count] : {std::pair("before", &before), std::pair("after", &after)}) {
    json.key(name)
        .begin_object()
        .member("replays", count->num_replays)
        .member("promotions", count->num_promoted)
        .member("sequences_mean", count->mean_sequences())
        .member("held_out_ratio_mean", count->mean_held_out())
        .end_object();
  }
  json.end_object();
  return print_document(std::move(out), kExitDone);
}

Result<int> learn_again(const KvLearnOptions& options, const GlobalOptions& globals) {
  Interruption interruption;
  const EngineOptions engine = {.ctx_tokens = eval::kShadowWindowTokens, .max_num_seqs = 1, .max_num_batched_tokens = eval::kShadowStepTokens, .no_prefix_cache = true};
  KVASIR_TRY(EngineConfig config, make_engine_config(engine, globals));
  std::error_code failed;
  std::filesystem::create_directories(options.report, failed);
  const std::string csv_path = options.report + "/kv-learning.csv";
  KVASIR_CHECKED(can_replace_text_file(csv_path));
  KVASIR_TRY(const auto traffic, traffic_of(options, config, globals, interruption));
  KVASIR_TRY(config.model_path, store::resolve_model(options.model));
  ProgressReporter progress({.quiet = globals.quiet});
  std::string csv(kCsvHead);
  ReplayCount before, after;
  const eval::LearningReplayOptions replays = {.champion = options.champion == "text"         ? eval::FirstChampion::kOfText
                                                           : options.champion == "calibrated" ? eval::FirstChampion::kCalibrated
                                                                                              : eval::FirstChampion::kNone,
                                               .num_champion_texts = options.num_champion_windows,
                                               .num_sequences = options.num_sequences,
                                               .num_unshifted = options.num_unshifted,
                                               .num_shifted = options.num_seeds};
  const Status done = eval::replay_kv_learning(
      config, traffic, options.shadows, replays, [&](std::string_view phase, double part) { progress.report_fraction(std::string(phase), part); },
      interruption.keep_going(), [&](const eval::LearningReplay& replay) {
        (replay.is_shifted ? after : before).add(replay);
        csv += csv_row(replay, options.champion);
        return replace_text_file(csv_path, csv);
      });
  progress.clear();
  if (!done && done.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  KVASIR_CHECKED(done);
  return print_counts(before, after, globals.json);
}

}  // namespace

void add_eval_kv_learn(CLI::App& eval, Context& context) {
  const auto options = std::make_shared<KvLearnOptions>();
  CLI::App* verb = eval.add_subcommand("kv-learn", "Play learning from traffic over texts: how soon a forecast is promoted, and whether one is in vain");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--file", options->files, "The traffic before and, as a second file, the traffic after a shift")->required()->expected(1, 2);
  verb->add_option("--report", options->report, "Folder for kv-learning.csv, a row a replay")->required();
  verb->add_option("--shadows", options->shadows, "File of recorded shadows: read where it is there, else written");
  verb->add_option("--champion", options->champion, "The first champion: learned on text of the first file, of calibrate-kv, or none")
      ->check(one_of({"text", "calibrated", "none"}))
      ->capture_default_str();
  verb->add_option("--windows", options->num_windows, "Windows of 1040 tokens of each file, at most")->transform(whole_number(4, 100000))->capture_default_str();
  verb->add_option("--champion-windows", options->num_champion_windows, "Of the first file, that the champion learns on and no replay sees")
      ->transform(whole_number(2, 10000))
      ->capture_default_str();
  verb->add_option("--sequences", options->num_sequences, "Sequences of a replay")->transform(whole_number(1, 100000))->capture_default_str();
  verb->add_option("--seeds", options->num_seeds, "Replays of the shifted traffic")->transform(whole_number(1, 1000))->capture_default_str();
  verb->add_option("--unshifted", options->num_unshifted, "Replays of the traffic before")->transform(whole_number(0, 10000))->capture_default_str();
  on_chosen(*verb, context, [options, &context] { return learn_again(*options, context.options); });
}

}  // namespace kvasir::cli
