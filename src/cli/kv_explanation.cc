#include "cli/kv_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/printable.h"
#include "base/units.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kTokensPerBlock = 16;

std::string percentage(std::optional<double> share, const char* unknown = "-") {
  return share ? fmt::format("{:.1f}%", 100 * *share) : unknown;
}
std::string attention(std::optional<double> share) {
  return share ? fmt::format("{:.3f}%", 100 * *share) : "-";
}

std::string budget_of(const journal::LoggedSequence& sequence) {
  return sequence.budget_bytes > 0 ? format_bytes(sequence.budget_bytes) : percentage(sequence.budget_share);
}

std::string request_of(const journal::LoggedSequence& sequence) {
  const std::string id =
      sequence.client_id.empty() ? std::to_string(sequence.request) : printable(sequence.client_id);
  return sequence.choice == 0 ? id : fmt::format("{} choice {}", id, sequence.choice);
}

std::string headline(const journal::LoggedSequence& sequence) {
  std::string out =
      fmt::format("sequence {}: request {} of {} ({}), {} within {}, a prompt of {} tokens\n", sequence.id,
                  request_of(sequence), printable(sequence.model), printable(sequence.started_at),
                  printable(sequence.policy), budget_of(sequence), sequence.prompt_tokens);
  if (sequence.num_dropped_steps == 0) return out;
  return out + fmt::format("{} steps of its run came too fast for the log and are missing\n",
                           sequence.num_dropped_steps);
}

std::string formats_of(const journal::LoggedStep& step) {
  double total = 0.0;
  for (const journal::FormatUse& use : step.formats) total += static_cast<double>(use.cells);
  std::string out;
  for (const journal::FormatUse& use : step.formats) {
    const double share = 100 * static_cast<double>(use.cells) / total;
    out += fmt::format("{}{} {:.{}f}%", out.empty() ? "" : ", ", printable(use.format), share,
                       share < 1.0 ? 1 : 0);
  }
  return out;
}

// The changes of the cells of one block.
struct TouchedBlock {
  std::int64_t num_cells = 0;
  std::map<std::string, std::int64_t> changes;  // "f16>q8"
  std::set<std::string> reasons;
  double forecast_sum = 0.0, price_sum = 0.0;
  std::int64_t num_forecasts = 0;

  void add(const journal::LoggedAction& action) {
    ++num_cells;
    ++changes[fmt::format("{}>{}", printable(action.from), printable(action.to))];
    reasons.insert(printable(action.reason) + (action.is_shared ? ", all holders agreed" : ""));
    if (!action.forecast) return;
    ++num_forecasts;
    forecast_sum += *action.forecast;
    price_sum += action.price.value_or(0.0);
  }
  std::optional<double> mean_of(double sum) const {
    return num_forecasts == 0 ? std::nullopt : std::optional(sum / static_cast<double>(num_forecasts));
  }
};

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : "; ") + word;
  return out;
}

// The most frequent first.
std::string changes_text(const TouchedBlock& block) {
  std::vector<std::pair<std::int64_t, std::string>> changes;
  for (const auto& [change, count] : block.changes) changes.emplace_back(-count, change);
  std::ranges::sort(changes);
  std::string out;
  for (const auto& [count, change] : changes) {
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", change, -count);
  }
  return out;
}

std::string loss(std::optional<double> price) { return price ? fmt::format("{:.1e}", *price) : "-"; }

std::string blocks_table(const std::vector<journal::LoggedAction>& actions) {
  std::map<std::int64_t, TouchedBlock> blocks;
  for (const journal::LoggedAction& action : actions) blocks[action.block].add(action);
  std::string out = "BLOCK  TOKENS         CELLS  FORECAST  LOSS/BYTE  WHY         BECAME\n";
  for (const auto& [index, block] : blocks) {
    out += fmt::format("{:>5}  {:<13}  {:>5}  {:>8}  {:>9}  {:<10}  {}\n", index,
                       fmt::format("{}-{}", kTokensPerBlock * index, kTokensPerBlock * (index + 1) - 1),
                       block.num_cells, attention(block.mean_of(block.forecast_sum)),
                       loss(block.mean_of(block.price_sum)), joined(block.reasons), changes_text(block));
  }
  return out;
}

std::string cells_table(const std::vector<journal::LoggedAction>& actions) {
  std::string out = "LAYER  HEAD  FORECAST  LOSS/BYTE  WHY         BECAME\n";
  for (const journal::LoggedAction& action : actions) {
    TouchedBlock cell;
    cell.add(action);
    out += fmt::format("{:>5}  {:>4}  {:>8}  {:>9}  {:<10}  {}>{}\n", action.layer, action.head,
                       attention(action.forecast), loss(action.price), joined(cell.reasons),
                       printable(action.from), printable(action.to));
  }
  return out;
}

std::string what_happened(const journal::LoggedStep& step, std::size_t num_blocks) {
  std::string out = fmt::format("at {} tokens: ", step.token);
  if (!step.is_planned) {
    return out + fmt::format("other holders agreed to {} cells of {} blocks\n", step.num_actions, num_blocks);
  }
  out +=
      fmt::format("{} of the bytes before, {} after; {} cells of {} blocks changed",
                  percentage(step.bytes_before), percentage(step.bytes_after), step.num_actions, num_blocks);
  if (step.num_waiting > 0) out += fmt::format(", {} wait for other holders", step.num_waiting);
  if (step.has_no_room) out += ", the rest for memory";
  return out + "\n";
}

void write_action(JsonWriter& json, const journal::LoggedAction& action) {
  json.begin_object()
      .member("layer", action.layer)
      .member("head", action.head)
      .member("block", action.block)
      .member("first_token", kTokensPerBlock * action.block)
      .member("from", action.from)
      .member("to", action.to)
      .member("reason", action.reason)
      .member("shared", action.is_shared)
      .member("forecast", action.forecast)
      .member("loss_per_byte", action.price)
      .end_object();
}

void write_step(JsonWriter& json, const KvExplanation::Step& entry, bool with_actions) {
  const journal::LoggedStep& step = entry.step;
  json.begin_object()
      .member("token", step.token)
      .member("planned", step.is_planned)
      .member("bytes_before", step.bytes_before)
      .member("bytes_after", step.bytes_after)
      .member("lost_max", step.lost_max)
      .member("lost_mean", step.lost_mean)
      .member("num_actions", step.num_actions)
      .member("waiting", step.num_waiting)
      .member("no_room", step.has_no_room)
      .member("policy_ms", step.policy_ms)
      .member("record_ms", step.record_ms);
  json.key("formats").begin_object();
  for (const journal::FormatUse& use : step.formats) {
    json.key(use.format).begin_object().member("cells", use.cells).member("bytes", use.bytes).end_object();
  }
  json.end_object();
  if (with_actions) {
    json.key("actions").begin_array();
    for (const journal::LoggedAction& action : entry.actions) write_action(json, action);
    json.end_array();
  }
  json.end_object();
}

void write_regret(JsonWriter& json, const journal::RegretSummary& regrets) {
  json.begin_object()
      .member("cells", regrets.num_cells)
      .member("regretted", regrets.num_regretted)
      .member("mean_forecast", regrets.mean_forecast)
      .member("mean_realised", regrets.mean_realised)
      .key("worst")
      .begin_array();
  for (const journal::Regret& cell : regrets.worst) {
    json.begin_object()
        .member("layer", cell.layer)
        .member("head", cell.head)
        .member("block", cell.block)
        .member("last_token", cell.last_token)
        .member("format", cell.format)
        .member("forecast", cell.forecast)
        .member("realised", cell.realised)
        .end_object();
  }
  json.end_array().end_object();
}

}  // namespace

std::string sequences_text(const KvExplanation& explanation) {
  std::string out =
      "SEQ    STARTED (UTC)        POLICY         BUDGET     BYTES   PROMPT  TOKENS  STEPS  ACTIONS  "
      "REQUEST\n";
  for (const journal::LoggedSequence& s : explanation.sequences) {
    out += fmt::format("{:<5}  {:<19}  {:<13}  {:<9}  {:>6}  {:>6}  {:>6}  {:>5}  {:>7}  {}\n", s.id,
                       printable(s.started_at), printable(s.policy), budget_of(s), percentage(s.bytes_share),
                       s.prompt_tokens, s.tokens ? std::to_string(*s.tokens) : "-", s.num_steps,
                       s.num_actions, request_of(s));
  }
  return out + "--seq SEQ shows the steps of one, --seq SEQ --token T what was done at a token and why.\n";
}

std::string steps_text(const KvExplanation& explanation) {
  std::string out = headline(explanation.sequences.front());
  out += "TOKEN   BEFORE   AFTER  ACTIONS   LOST     MS  FORMATS OF ITS CELLS\n";
  for (const auto& [step, actions] : explanation.steps) {
    out +=
        fmt::format("{:>5}  {:>7}  {:>6}  {:>7}  {:>5}  {:>5}  {}\n", step.token,
                    percentage(step.bytes_before), percentage(step.bytes_after), step.num_actions,
                    percentage(step.lost_max), step.policy_ms ? fmt::format("{:.2f}", *step.policy_ms) : "-",
                    step.is_planned ? formats_of(step) : "(other holders agreed)");
  }
  const journal::RegretSummary& regrets = explanation.regrets;
  if (regrets.num_cells == 0) return out;
  out += fmt::format(
      "\n{} cells whose attention is known: {} forecast, {} realised, {} got more than forecast\n",
      regrets.num_cells, attention(regrets.mean_forecast), attention(regrets.mean_realised),
      regrets.num_regretted);
  if (regrets.worst.empty()) return out;
  out += "BLOCK  LAYER  HEAD  FORMAT  SINCE  FORECAST  REALISED\n";
  for (const journal::Regret& cell : regrets.worst) {
    out += fmt::format("{:>5}  {:>5}  {:>4}  {:<6}  {:>5}  {:>8}  {:>8}\n", cell.block, cell.layer, cell.head,
                       printable(cell.format), cell.last_token, attention(cell.forecast),
                       attention(cell.realised));
  }
  return out;
}

std::string actions_text(const KvExplanation& explanation) {
  std::string out = headline(explanation.sequences.front());
  for (const auto& [step, actions] : explanation.steps) {
    std::set<std::int64_t> blocks;
    for (const journal::LoggedAction& action : actions) blocks.insert(action.block);
    if (explanation.block) {
      out += fmt::format("at {} tokens, of block {}: {} cells changed\n", step.token, *explanation.block,
                         actions.size());
    } else {
      out += what_happened(step, blocks.size());
    }
    if (!actions.empty()) out += explanation.block ? cells_table(actions) : blocks_table(actions);
  }
  if (explanation.steps.empty()) out += fmt::format("block {} was never touched\n", *explanation.block);
  for (const auto& [reason, meaning] : explanation.reasons) {
    out += fmt::format("{}: {}\n", printable(reason), printable_line(meaning));
  }
  return out;
}

void write_sequence(JsonWriter& json, const journal::LoggedSequence& sequence) {
  json.begin_object()
      .member("seq", sequence.id)
      .member("run", sequence.run)
      .member("started_at", sequence.started_at)
      .member("model", sequence.model)
      .member("request", sequence.request)
      .member("choice", sequence.choice)
      .member("client_id", sequence.client_id)
      .member("policy", sequence.policy)
      .member("budget", sequence.budget_share)
      .member("budget_bytes", sequence.budget_bytes)
      .member("max_lost_share", sequence.max_lost_share)
      .member("prompt_tokens", sequence.prompt_tokens);
  json.member("tokens", sequence.tokens)
      .member("bytes_share", sequence.bytes_share)
      .member("num_steps", sequence.num_steps)
      .member("num_actions", sequence.num_actions)
      .member("dropped_steps", sequence.num_dropped_steps)
      .end_object();
}

void write_explanation(JsonWriter& json, const KvExplanation& explanation) {
  json.begin_object().key("sequence");
  write_sequence(json, explanation.sequences.front());
  json.key("steps").begin_array();
  for (const KvExplanation::Step& step : explanation.steps) {
    write_step(json, step, explanation.has_actions());
  }
  json.end_array();
  if (!explanation.has_actions()) {
    json.key("regret");
    write_regret(json, explanation.regrets);
  }
  json.key("reasons").begin_object();
  for (const auto& [reason, meaning] : explanation.reasons) json.member(reason, meaning);
  json.end_object().end_object();
}

}  // namespace kvasir::cli
