#include "cli/eval_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/progress_reporter.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/prompt.h"
#include "cli/standard_output.h"
#include "eval/search_tasks.h"
#include "search/methods.h"

namespace kvasir::cli {
namespace {

struct EvalSearchOptions {
  std::string model, tasks;
  std::vector<std::string> methods = {"greedy", "best_of", "vote"};
  std::vector<std::int32_t> budgets = {1, 2, 4, 8};
  std::string scorer = "logprob";
  std::string scorer_model;  // that judges; empty: the model itself
  std::int32_t max_tokens = 256;
  float temperature = 0.7f;
  std::uint64_t seed = 1;
  EngineOptions engine;
};

struct Row {
  std::string method;
  std::int32_t budget = 1;
  eval::SearchScore score;
};

int print_rows(const std::vector<Row>& rows, bool as_json, int exit_code) {
  if (!as_json) {
    print("method   budget  solved            tokens  search tokens  seconds\n");
    for (const Row& row : rows) {
      print(fmt::format("{:<8} {:>6}  {:4.2f} ({:4.2f}-{:4.2f})  {:>7}  {:>13}  {:>7.1f}\n", row.method, row.budget, row.score.solved(),
                        row.score.solved_low(), row.score.solved_high(), row.score.num_tokens, row.score.num_search_tokens, row.score.seconds));
    }
    return finish_output(exit_code);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().key("results").begin_array();
  for (const Row& row : rows) {
    json.begin_object()
        .member("method", row.method)
        .member("budget", row.budget)
        .member("items", row.score.num_items)
        .member("solved", row.score.solved())
        .member("solved_low", row.score.solved_low())
        .member("solved_high", row.score.solved_high())
        .member("tokens", row.score.num_tokens)
        .member("search_tokens", row.score.num_search_tokens)
        .member("score_tokens", row.score.num_score_tokens)
        .member("seconds", row.score.seconds)
        .end_object();
  }
  json.end_array().end_object();
  return print_document(std::move(out), exit_code);
}

// The conversation through the chat template, or its texts one behind the other where there is none.
Result<std::vector<TokenId>> encode_turns(const Engine& engine, std::span<const std::string> turns) {
  if (engine.chat_template() == nullptr) {
    std::string text;
    for (const std::string& turn : turns) text += text.empty() ? turn : "\n" + turn;
    return encode_raw(engine, text, false);
  }
  std::vector<text::ChatMessage> messages;
  for (std::size_t i = 0; i < turns.size(); ++i) messages.push_back({.role = i % 2 == 0 ? "user" : "assistant", .content = turns[i]});
  return encode_conversation(engine, messages);
}

eval::SearchScorer scorer_named(std::string_view name) {
  if (name == "verifier") return eval::SearchScorer::kVerifier;
  return name == "judge" ? eval::SearchScorer::kJudge : eval::SearchScorer::kLogprob;
}

Result<int> run(const EvalSearchOptions& options, const GlobalOptions& globals) {
  if (!options.scorer_model.empty() && options.scorer != "judge") {
    return make_error(ErrorKind::kUsage, fmt::format("--scorer-model: it judges, and --scorer is {}", options.scorer), "scorer-model");
  }
  KVASIR_TRY(const std::string text, read_input_file(options.tasks));
  KVASIR_TRY(const std::vector<eval::SearchTask> tasks, eval::parse_search_tasks(text));
  Interruption interruption;
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, std::move(config), globals, &interruption.signals()));
  Engine& engine = *session.engine;
  std::optional<ModelSession> second;
  if (!options.scorer_model.empty()) {
    KVASIR_TRY(EngineConfig of_second, make_engine_config(options.engine, globals));
    KVASIR_TRY(second, open_text_session(options.scorer_model, std::move(of_second), globals, &interruption.signals()));
  }
  Engine& judging = second ? *second->engine : engine;
  search::Judge judge(judging, [&](std::span<const std::string> turns) { return encode_turns(judging, turns); }, interruption.keep_going());
  ProgressReporter progress({.quiet = globals.quiet});
  std::vector<Row> rows;
  for (const std::string& name : options.methods) {
    for (const std::int32_t budget : options.budgets) {
      if (name == "greedy" && budget != options.budgets.front()) continue;  // it has none
      const eval::SearchRun method = {.method = search::method_named(name),
                                      .options = {.budget = name == "greedy" ? 1 : budget, .max_tokens = options.max_tokens,
                                                  .temperature = options.temperature, .seed = options.seed},
                                      .scorer = scorer_named(options.scorer),
                                      .judge = &judge};
      const auto score = eval::run_search_tasks(
          engine, tasks, method, [&](std::span<const std::string> turns) { return encode_turns(engine, turns); }, interruption.keep_going(),
          [&](std::size_t done) { progress.report_fraction(fmt::format("{} {}", name, budget), static_cast<double>(done) / static_cast<double>(tasks.size())); });
      if (!score && score.error().kind == ErrorKind::kCancelled) return print_rows(rows, globals.json, kExitInterrupted);
      if (!score) return std::unexpected(score.error());
      rows.push_back({.method = name, .budget = method.options.budget, .score = *score});
    }
  }
  progress.clear();
  return print_rows(rows, globals.json, kExitDone);
}

}  // namespace

void add_eval_search(CLI::App& eval, Context& context) {
  const auto options = std::make_shared<EvalSearchOptions>();
  CLI::App* verb = eval.add_subcommand("search", "What more tokens for an answer are worth, on tasks whose answers can be checked");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--tasks", options->tasks, "JSON lines {prompt, answer, check}; check is exact, number or regex")->required();
  verb->add_option("--methods", options->methods, "Ways to search")->delimiter(',')->check(one_of(search::method_names()))->capture_default_str();
  verb->add_option("--budgets", options->budgets, "Answers, beams, turns or branches of each")->delimiter(',')->check(CLI::Range(1, 64))->capture_default_str();
  verb->add_option("--scorer", options->scorer, "How candidates are ranked: by their own log-probability, by the check of the task (verifier), or by a model that is asked "
                   "whether they are right (judge)")
      ->check(one_of({"logprob", "verifier", "judge"}))
      ->capture_default_str();
  verb->add_option("--scorer-model", options->scorer_model, "The model that judges, where it is another one");
  verb->add_option("--max-tokens", options->max_tokens, "Of an answer")->transform(whole_number(1, 1 << 20))->capture_default_str();
  verb->add_option("--temperature", options->temperature, "Of what is drawn")->check(CLI::Range(0.0, 2.0))->capture_default_str();
  verb->add_option("--seed", options->seed, "Of what is drawn")->capture_default_str();
  add_context_option(*verb, options->engine, "--ctx");
  on_chosen(*verb, context, [options, &context] { return run(*options, context.options); });
}

}  // namespace kvasir::cli
