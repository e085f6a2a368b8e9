// kvasir kv explain: what KV policies did to a sequence, and why, from a log that --kv-log wrote.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "cli/kv_explanation.h"
#include "cli/kv_shadows.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "journal/log_reader.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
constexpr std::int64_t kMaxWorst = 10;  // cells that got more attention than forecast, to be shown

struct ExplainOptions {
  std::string log;
  std::optional<std::int64_t> sequence, token, block;
};

Result<int> list_sequences(journal::LogReader& log, const GlobalOptions& globals) {
  KvExplanation explanation;
  KVASIR_TRY(explanation.sequences, log.sequences());
  if (!globals.json) {
    if (explanation.sequences.empty()) {
      print("No KV policy has acted yet: --kv-budget gives one something to do.\n");
    } else {
      print(sequences_text(explanation));
    }
    return finish_output();
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array();
  for (const journal::LoggedSequence& sequence : explanation.sequences) write_sequence(json, sequence);
  json.end_array();
  return print_document(std::move(out));
}

Error no_such_sequence(std::int64_t id, const std::string& log) {
  return {ErrorKind::kUsage,
          fmt::format("--seq: {} has no sequence {}; without --seq it lists those that it has", log, id),
          "seq"};
}

Error no_such_token(std::int64_t sequence, std::int64_t token,
                    const std::vector<journal::LoggedStep>& steps) {
  return {ErrorKind::kUsage,
          fmt::format("--token: the policy of sequence {} acted last at {} tokens, got {}", sequence,
                      steps.empty() ? 0 : steps.back().token, token),
          "token"};
}

// The actions of steps, with what their reasons mean.
Status add_actions(journal::LogReader& log, const std::vector<journal::LoggedStep>& steps,
                   KvExplanation& explanation) {
  for (const journal::LoggedStep& step : steps) {
    KVASIR_TRY(auto actions, log.actions(step.id, explanation.block));
    for (const journal::LoggedAction& action : actions) {
      if (explanation.reasons.contains(action.reason)) continue;
      KVASIR_TRY(explanation.reasons[action.reason], log.meaning_of(action.reason));
    }
    if (actions.empty() && !explanation.token) continue;  // of a block's history
    explanation.steps.push_back({step, std::move(actions)});
  }
  return {};
}

Result<KvExplanation> explain_sequence(journal::LogReader& log, const ExplainOptions& options) {
  KvExplanation explanation{.token = options.token, .block = options.block};
  const std::int64_t id = *options.sequence;
  KVASIR_TRY(auto sequence, log.find_sequence(id));
  if (!sequence) return std::unexpected(no_such_sequence(id, options.log));
  explanation.sequences.push_back(std::move(*sequence));
  if (options.token) {
    KVASIR_TRY(const auto steps, log.steps_at(id, *options.token));
    if (steps.empty()) {
      KVASIR_TRY(const auto all, log.steps(id));
      return std::unexpected(no_such_token(id, *options.token, all));
    }
    KVASIR_CHECKED(add_actions(log, steps, explanation));
    return explanation;
  }
  KVASIR_TRY(auto steps, log.steps(id));
  if (options.block) {
    KVASIR_CHECKED(add_actions(log, steps, explanation));
    if (explanation.steps.empty()) {
      return make_error(
          ErrorKind::kUsage,
          fmt::format("--block: nothing was done to block {} of sequence {}", *options.block, id), "block");
    }
    return explanation;
  }
  for (journal::LoggedStep& step : steps) explanation.steps.push_back({std::move(step), {}});
  KVASIR_TRY(explanation.regrets, log.regrets(id, kMaxWorst));
  return explanation;
}

Result<int> explain_policy(const ExplainOptions& options, const GlobalOptions& globals) {
  if (options.token && !options.sequence) {
    return make_error(ErrorKind::kUsage, "--token: needs --seq, the sequence that it is about", "token");
  }
  if (options.block && !options.sequence) {
    return make_error(ErrorKind::kUsage, "--block: needs --seq, the sequence that it is of", "block");
  }
  KVASIR_TRY(journal::LogReader log, journal::LogReader::open(options.log));
  if (!options.sequence) return list_sequences(log, globals);
  KVASIR_TRY(const KvExplanation explanation, explain_sequence(log, options));
  if (!globals.json) {
    print(explanation.has_actions() ? actions_text(explanation) : steps_text(explanation));
    return finish_output();
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  write_explanation(json, explanation);
  return print_document(std::move(out));
}

}  // namespace

void add_kv(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("kv", "Inspect logs of KV-cache compression");
  verb->require_subcommand(1);
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* below = verb->add_subcommand("explain", "Show which KV blocks were compressed, and why");
  below->add_option("LOG", options->log, "A file that --kv-log wrote")->required();
  below->add_option("--seq", options->sequence, "The sequence (without: a list of all)")
      ->transform(whole_number(std::int64_t{1}, kMaxNumber));
  below->add_option("--token", options->token, "Show the actions after so many computed tokens")
      ->transform(whole_number(std::int64_t{0}, kMaxNumber));
  below
      ->add_option("--block", options->block,
                   "Show each layer and head of one block of 16 tokens")
      ->transform(whole_number(std::int64_t{0}, kMaxNumber));
  on_chosen(*below, context, [options, &context] { return explain_policy(*options, context.options); });
  add_kv_shadows(*verb, context);
}

}  // namespace kvasir::cli
