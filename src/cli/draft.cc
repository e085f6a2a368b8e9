// kvasir draft: guesses that are learned of a model beforehand, and what they are worth.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "base/text_file.h"
#include "cli/benchmark.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/prompt.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/draft_heads.h"
#include "eval/draft_training.h"
#include "eval/workload.h"
#include "io/draft_file.h"
#include "io/model_fingerprint.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

constexpr std::int32_t kMostAnswerTokens = 1024;
constexpr double kMostBelow = 0.03;  // that acceptance may be below the file's

struct DraftOptions {
  std::string model;
  std::string path;   // of the draft file; empty: beside the model
  std::string prompts;
  std::int64_t num_tokens = eval::DraftTraining{}.num_tokens;
  std::int32_t answer_tokens = eval::DraftTraining{}.answer_tokens;  // 0 in a check: as the file has it
  std::uint64_t seed = 1;
};

Result<ModelSession> open_for_drafts(const std::string& model, const GlobalOptions& globals, Interruption& interruption) {
  constexpr std::int32_t kStreams = 32;
  const EngineOptions options = {.max_num_seqs = kStreams, .no_prefix_cache = true};
  KVASIR_TRY(EngineConfig config, make_engine_config(options, globals));
  return open_text_session(model, std::move(config), globals, &interruption.signals());
}

Result<std::vector<eval::Prompt>> prompts_of(const Engine& engine, const std::string& path) {
  std::vector<eval::Prompt> prompts;
  if (path.empty()) return prompts;
  KVASIR_TRY(const std::string lines, read_input_file(path));
  KVASIR_TRY(std::vector<eval::WorkloadItem> items, eval::parse_workload(engine, lines, path));
  const std::int32_t most = engine.model_info().max_model_len_tokens / 2;
  for (eval::WorkloadItem& item : items) {
    if (std::ssize(item.prompt_token_ids) <= most) prompts.push_back(std::move(item.prompt_token_ids));
  }
  if (prompts.size() < items.size()) {
    say(fmt::format("kvasir: {}: {} of {} prompts are left out, they have more than {} tokens", printable_line(path),
                    items.size() - prompts.size(), items.size(), most));
  }
  if (prompts.empty()) {
    return make_error(ErrorKind::kUnmet, fmt::format("{}: no prompt has at most {} tokens", printable_line(path), most), "prompts");
  }
  return prompts;
}

eval::EncodeQuestion encode_question_of(const Engine& engine) {
  if (engine.chat_template() == nullptr) return {};
  return [&engine](std::string_view question) {
    const text::ChatMessage message = {.role = "user", .content = std::string(question)};
    return encode_conversation(engine, std::span(&message, 1));
  };
}

std::string shares(const std::vector<double>& acceptance) {
  std::vector<std::string> words;
  for (const double share : acceptance) words.push_back(fmt::format("{:.3f}", share));
  return fmt::format("{}", fmt::join(words, " "));
}

void write_shares(JsonWriter& json, std::string_view name, const std::vector<double>& values) {
  json.key(name).begin_array();
  for (const double value : values) json.value(value);
  json.end_array();
}

void write_file(JsonWriter& json, const io::DraftFile& file) {
  json.member("kind", "ngram").member("base", file.base_name).member("base_fingerprint", file.base_fingerprint);
  json.member("depth", std::ssize(file.acceptance)).member("bytes", file.table_bytes()).member("trained_on", file.trained_on);
}

// A file that is there is replaced where it is a draft file, and nothing else is.
Status check_output(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !io::read_draft_file(path)) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: it is there and is no draft file, so it stays", printable_line(path)), "out");
  }
  return can_replace_text_file(path);
}

Result<int> train(const DraftOptions& options, const GlobalOptions& globals) {
  Interruption interruption;
  KVASIR_TRY(const std::string model, store::resolve_model(options.model));
  const std::string path = options.path.empty() ? io::draft_file_path(model) : options.path;
  KVASIR_CHECKED(check_output(path));
  KVASIR_TRY(const ModelSession session, open_for_drafts(options.model, globals, interruption));
  KVASIR_TRY(const auto prompts, prompts_of(*session.engine, options.prompts));
  ProgressReporter progress({.quiet = globals.quiet});
  auto file = eval::train_draft(*session.engine, prompts, encode_question_of(*session.engine),
                                {.num_tokens = options.num_tokens, .answer_tokens = options.answer_tokens, .seed = options.seed},
                                {.keep_going = interruption.keep_going(),
                                 .progress = [&](std::string_view phase, double done) { progress.report_fraction(phase, done); }});
  progress.clear();
  if (!file && file.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!file) return std::unexpected(file.error());
  file->base_name = session.engine->model_info().name;
  KVASIR_TRY(file->base_fingerprint, io::model_fingerprint(model));
  KVASIR_CHECKED(io::write_draft_file(path, *file));
  if (!globals.json) {
    print(fmt::format("{}: {} KiB, of {}\nguesses right, on answers held out: {}\n", printable_line(path),
                      file->table_bytes() / 1024, file->trained_on, shares(file->acceptance)));
    return finish_output(kExitDone);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("file", path);
  write_file(json, *file);
  write_shares(json, "acceptance", file->acceptance);
  json.end_object();
  return print_document(std::move(out), kExitDone);
}

Result<int> info(const DraftOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const io::DraftFile file, io::read_draft_file(options.path));
  if (!globals.json) {
    print(fmt::format("kind                  ngram, contexts of 1 to {} tokens\nmodel                 {} ({})\n"
                      "trained on            {}\nbytes                 {}\nguesses right         {}\nheld-out prompts      {}\n",
                      file.order, printable_line(file.base_name), printable_line(file.base_fingerprint),
                      printable_line(file.trained_on), file.table_bytes(), shares(file.acceptance), file.held_out_prompts.size()));
    return finish_output(kExitDone);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object();
  write_file(json, file);
  write_shares(json, "expected", file.acceptance);
  json.end_object();
  return print_document(std::move(out), kExitDone);
}

// The time of a step with 1, 2, .. rows over that of one with one row.
Result<std::vector<double>> time_rows(Engine& engine, std::size_t num_rows, Interruption& interruption) {
  std::vector<double> times;
  double one = 0.0;
  for (std::size_t rows = 1; rows <= num_rows; ++rows) {
    const BenchmarkCase test = {.kind = BenchmarkKind::kGeneration, .n_gen = 32, .batch = static_cast<std::int32_t>(rows)};
    KVASIR_TRY(const Speed speed, measure_speed(engine, test, 3, 0, {.keep_going = interruption.keep_going(), .run = [](std::int32_t) {}}));
    const double step = static_cast<double>(rows) / speed.median;
    if (rows == 1) one = step;
    times.push_back(step / one);
  }
  return times;
}

struct DraftReport {
  io::DraftFile file;
  bool matches = false;  // the model is the very file that it was trained on
  eval::DraftCheck check;
  std::vector<double> row_times;

  bool is_worse() const {
    for (std::size_t i = 0; i < std::min(check.acceptance.size(), file.acceptance.size()); ++i) {
      if (check.acceptance[i] < file.acceptance[i] - kMostBelow) return true;
    }
    return false;
  }
};

int print_check(const DraftReport& report, const GlobalOptions& globals) {
  const int exit_code = report.is_worse() ? kExitNo : kExitDone;
  if (!globals.json) {
    print(fmt::format("guesses right         {}\nexpected              {}\ntokens a step         {:.2f}, with {} guesses in each\n"
                      "times of steps        {}\n{}\n",
                      shares(report.check.acceptance), shares(report.file.acceptance), report.check.tokens_per_step(),
                      report.check.acceptance.size(), shares(report.row_times),
                      exit_code == kExitDone ? "as good as the file says" : "worse than the file says"));
    return finish_output(exit_code);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object();
  write_file(json, report.file);
  json.member("matches", report.matches).member("as_good", exit_code == kExitDone);
  write_shares(json, "acceptance", report.check.acceptance);
  write_shares(json, "expected", report.file.acceptance);
  json.member("tokens", report.check.num_tokens).member("tokens_per_step", report.check.tokens_per_step());
  write_shares(json, "row_times", report.row_times);
  json.end_object();
  return print_document(std::move(out), exit_code);
}

// As the engine finds it.
Result<io::DraftFile> file_to_check(const DraftOptions& options, const std::string& model) {
  if (!options.path.empty()) return io::read_draft_file(options.path);
  const std::string beside = io::draft_file_path(model);
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return io::read_draft_file(beside);
  KVASIR_TRY(auto own, find_built_in_draft(model));
  if (own) return *std::move(own);
  return make_error(ErrorKind::kBadFile, fmt::format("{}: there is no such file; kvasir draft train {} makes it", printable_line(beside),
                                                     printable_line(options.model)), "draft-heads");
}

Result<int> check(const DraftOptions& options, const GlobalOptions& globals) {
  Interruption interruption;
  KVASIR_TRY(const std::string model, store::resolve_model(options.model));
  DraftReport report;
  KVASIR_TRY(report.file, file_to_check(options, model));
  KVASIR_TRY(const std::string fingerprint, io::model_fingerprint(model));
  report.matches = fingerprint == report.file.base_fingerprint;
  KVASIR_TRY(const ModelSession session, open_for_drafts(options.model, globals, interruption));
  KVASIR_TRY(std::vector<eval::Prompt> prompts, prompts_of(*session.engine, options.prompts));
  if (options.prompts.empty()) prompts = report.file.held_out_prompts;
  if (prompts.empty()) return make_error(ErrorKind::kUsage, "the file holds no prompts, so --file has to name some", "file");
  const std::int32_t most = options.answer_tokens > 0 ? options.answer_tokens : report.file.held_out_tokens;
  ProgressReporter progress({.quiet = globals.quiet});
  auto measured = eval::check_draft(*session.engine, report.file, prompts, most,
                                    {.keep_going = interruption.keep_going(),
                                     .progress = [&](std::string_view phase, double done) { progress.report_fraction(phase, done); }});
  progress.clear();
  if (!measured && measured.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!measured) return std::unexpected(measured.error());
  report.check = *std::move(measured);
  KVASIR_TRY(report.row_times, time_rows(*session.engine, report.check.acceptance.size() + 1, interruption));
  return print_check(report, globals);
}

void add_train(CLI::App& draft, Context& context) {
  const auto options = std::make_shared<DraftOptions>();
  CLI::App* verb = draft.add_subcommand("train", "Learn guesses from what the model writes itself, into a file beside it");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--prompts", options->prompts,
                   "JSON lines {prompt} or {messages} of the kind that will be asked (default: questions of the model's own)");
  verb->add_option("--tokens", options->num_tokens, "How many the model writes, about")
      ->transform(whole_number(std::int64_t{1000}, std::int64_t{1} << 28))
      ->capture_default_str();
  verb->add_option("--answer-tokens", options->answer_tokens, "Of an answer, at most")->transform(whole_number(8, kMostAnswerTokens))->capture_default_str();
  verb->add_option("--seed", options->seed, "Of what is drawn")->capture_default_str();
  verb->add_option("--out", options->path, "The file to write (default: MODEL.draft beside the model, where it is found)");
  on_chosen(*verb, context, [options, &context] { return train(*options, context.options); });
}

void add_check(CLI::App& draft, Context& context) {
  const auto options = std::make_shared<DraftOptions>();
  options->answer_tokens = 0;
  CLI::App* verb = draft.add_subcommand("check", "Measure a file's guesses anew; exit code 1: they are worse than it says");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--draft-heads", options->path, "The file (default: the one beside the model)");
  verb->add_option("--file", options->prompts, "JSON lines {prompt} or {messages} instead of the file's held-out prompts");
  verb->add_option("--tokens", options->answer_tokens, "Of an answer, at most (0: as the file has it)")
      ->transform(whole_number(0, kMostAnswerTokens))
      ->capture_default_str();
  on_chosen(*verb, context, [options, &context] { return check(*options, context.options); });
}

}  // namespace

void add_draft(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("draft", "Learn, check and show guesses of tokens (docs/SPECULATION.md)");
  verb->require_subcommand(1);
  add_train(*verb, context);
  add_check(*verb, context);
  const auto options = std::make_shared<DraftOptions>();
  CLI::App* shown = verb->add_subcommand("info", "What a draft file says of itself");
  shown->add_option("FILE", options->path, "A file of kvasir draft train")->required();
  on_chosen(*shown, context, [options, &context] { return info(*options, context.options); });
}

}  // namespace kvasir::cli
