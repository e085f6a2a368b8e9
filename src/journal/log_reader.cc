#include "journal/log_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "journal/schema.h"

namespace kvasir::journal {
namespace {

std::optional<std::int64_t> whole(std::optional<double> number) {
  return number ? std::optional(static_cast<std::int64_t>(*number)) : std::nullopt;
}

LoggedSequence read_sequence(const sqlite::Statement& row) {
  return {.id = row.integer(0),
          .run = row.integer(1),
          .started_at = row.text(2),
          .model = row.text(3),
          .request = row.integer(4),
          .choice = row.integer(5),
          .client_id = row.text(6),
          .policy = row.text(7),
          .budget_share = row.real(8).value_or(1.0),
          .budget_bytes = row.integer(9),
          .max_lost_share = row.real(10).value_or(1.0),
          .prompt_tokens = row.integer(11),
          .tokens = whole(row.real(12)),
          .bytes_share = row.real(13),
          .num_steps = row.integer(14),
          .num_actions = row.integer(15),
          .num_dropped_steps = row.integer(16)};
}

LoggedStep read_step(const sqlite::Statement& row) {
  return {.id = row.integer(0),
          .token = row.integer(1),
          .is_planned = row.integer(2) != 0,
          .bytes_before = row.real(3),
          .bytes_after = row.real(4),
          .lost_max = row.real(5),
          .lost_mean = row.real(6),
          .num_actions = row.integer(7),
          .num_waiting = row.integer(8),
          .has_no_room = row.integer(9) != 0,
          .policy_ms = row.real(10),
          .record_ms = row.real(11),
          .formats = {}};
}

LoggedAction read_action(const sqlite::Statement& row) {
  return {.layer = row.integer(0),
          .head = row.integer(1),
          .block = row.integer(2),
          .from = row.text(3),
          .to = row.text(4),
          .reason = row.text(5),
          .is_shared = row.integer(6) != 0,
          .forecast = row.real(7),
          .price = row.real(8)};
}

// The name of a row's slice, and a number that orders slices.
struct SliceExpression {
  const char* name;
  const char* place;
};

// Lengths are sliced by powers of four, shares by quarters.
SliceExpression expression_of(ShadowSlice slice) {
  switch (slice) {
    case ShadowSlice::kNone: return {"''", "0"};
    case ShadowSlice::kPromptLength:
      return {"CASE WHEN prompt_tokens < 256 THEN '0-255' WHEN prompt_tokens < 1024 THEN '256-1023' "
              "WHEN prompt_tokens < 4096 THEN '1024-4095' WHEN prompt_tokens < 16384 THEN '4096-16383' ELSE '16384-' END",
              "min(prompt_tokens)"};
    case ShadowSlice::kAnswerLength:
      return {"CASE WHEN answer_tokens < 16 THEN '0-15' WHEN answer_tokens < 64 THEN '16-63' WHEN answer_tokens < 256 THEN "
              "'64-255' WHEN answer_tokens < 1024 THEN '256-1023' ELSE '1024-' END",
              "min(answer_tokens)"};
    case ShadowSlice::kCachedShare:
      return {"CASE WHEN cached_tokens = 0 THEN 'none' WHEN cached_tokens * 4 < prompt_tokens THEN 'below 25%' WHEN "
              "cached_tokens * 4 < prompt_tokens * 3 THEN '25-75%' ELSE '75% and more' END",
              "min(cached_tokens * 1.0 / max(1, prompt_tokens))"};
    case ShadowSlice::kTenant: return {"tenant", "0"};
  }
  return {"''", "0"};
}

LoggedShadows read_shadows(const sqlite::Statement& row) {
  return {.policy = row.text(0),
          .quality = row.text(1),
          .budget_share = row.real(2).value_or(1.0),
          .budget_bytes = row.integer(3),
          .slice = row.text(4),
          .num_scored = row.integer(5),
          .num_unknown = row.integer(6),
          .num_downgraded = row.integer(7),
          .num_tokens = row.integer(8),
          .kl = row.real(9),
          .kl_worst = row.real(10),
          .log_ratio = row.real(11),
          .top1 = row.real(12)};
}

// All rows of the query, in its order.
template <class Row>
Result<std::vector<Row>> read_all(sqlite::Statement& query, Row (*read)(const sqlite::Statement&)) {
  std::vector<Row> all;
  while (true) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return all;
    all.push_back(read(query));
  }
}

}  // namespace

Result<LogReader> LogReader::open(const std::string& path) {
  KVASIR_TRY(sqlite::Database database, open_for_reading(path));
  return LogReader(std::move(database));
}

Result<std::vector<LoggedSequence>> LogReader::sequences() { return select_sequences(std::nullopt); }

Result<std::optional<LoggedSequence>> LogReader::find_sequence(std::int64_t id) {
  KVASIR_TRY(std::vector<LoggedSequence> found, select_sequences(id));
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

Result<std::vector<LoggedSequence>> LogReader::select_sequences(std::optional<std::int64_t> id) {
  KVASIR_TRY(
      sqlite::Statement query,
      database_.prepare(fmt::format(
          "SELECT s.id, s.run, r.started_at, r.model, s.request, s.choice, s.client_id, s.policy, "
          "s.budget_share, s.budget_bytes, s.max_lost_share, s.prompt_tokens, s.tokens, s.bytes_share, "
          "count(t.id), total(t.actions), r.dropped_steps "
          "FROM sequences s JOIN runs r ON r.id = s.run LEFT JOIN steps t ON t.sequence = s.id "
          "{} GROUP BY s.id ORDER BY s.id",
          id ? "WHERE s.id = ?" : "")));
  if (id) query.bind_all(*id);
  return read_all(query, read_sequence);
}

Result<std::vector<LoggedStep>> LogReader::steps(std::int64_t sequence) {
  return select_steps("token >= ?2", sequence, 0);
}

Result<std::vector<LoggedStep>> LogReader::steps_at(std::int64_t sequence, std::int64_t token) {
  return select_steps("token = (SELECT min(token) FROM steps WHERE sequence = ?1 AND token >= ?2)", sequence,
                      token);
}

Result<std::vector<LoggedStep>> LogReader::select_steps(std::string_view condition, std::int64_t sequence,
                                                        std::int64_t token) {
  KVASIR_TRY(
      sqlite::Statement query,
      database_.prepare(fmt::format(
          "SELECT id, token, planned, bytes_before, bytes_after, lost_max, lost_mean, actions, waiting, "
          "no_room, policy_ms, record_ms FROM steps WHERE sequence = ?1 AND {} ORDER BY id",
          condition)));
  KVASIR_TRY(sqlite::Statement formats,
             database_.prepare("SELECT f.name, u.cells, u.bytes FROM step_formats u JOIN formats f "
                               "ON f.id = u.format WHERE u.step = ? ORDER BY u.cells DESC"));
  query.bind_all(sequence, token);
  KVASIR_TRY(std::vector<LoggedStep> all, read_all(query, read_step));
  for (LoggedStep& step : all) {
    formats.bind_all(step.id);
    while (true) {
      KVASIR_TRY(const bool has_row, formats.next());
      if (!has_row) break;
      step.formats.push_back({formats.text(0), formats.integer(1), formats.integer(2)});
    }
  }
  return all;
}

Result<std::vector<LoggedAction>> LogReader::actions(std::int64_t step, std::optional<std::int64_t> block) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare(
                 "SELECT a.layer, a.head, a.block, f.name, t.name, r.name, a.shared, a.forecast, a.price "
                 "FROM actions a JOIN formats f ON f.id = a.from_format JOIN formats t ON t.id = a.to_format "
                 "JOIN reasons r ON r.id = a.reason WHERE a.step = ?1 AND (?2 < 0 OR a.block = ?2) "
                 "ORDER BY a.block, a.layer, a.head"));
  query.bind_all(step, block.value_or(-1));
  return read_all(query, read_action);
}

Result<RegretSummary> LogReader::regrets(std::int64_t sequence, std::int64_t max_worst) {
  RegretSummary summary;
  KVASIR_TRY(sqlite::Statement totals,
             database_.prepare("SELECT count(*), total(regret > 0), avg(forecast), avg(realised) FROM blocks "
                               "WHERE sequence = ? AND regret IS NOT NULL"));
  totals.bind_all(sequence);
  KVASIR_TRY(const bool has_totals, totals.next());
  if (!has_totals) return summary;
  summary.num_cells = totals.integer(0);
  summary.num_regretted = totals.integer(1);
  summary.mean_forecast = totals.real(2).value_or(0.0);
  summary.mean_realised = totals.real(3).value_or(0.0);
  KVASIR_TRY(
      sqlite::Statement worst,
      database_.prepare("SELECT b.layer, b.head, b.block, b.last_token, f.name, b.forecast, b.realised "
                        "FROM blocks b JOIN formats f ON f.id = b.format "
                        "WHERE b.sequence = ? AND b.regret > 0 ORDER BY b.regret DESC LIMIT ?"));
  worst.bind_all(sequence, max_worst);
  while (true) {
    KVASIR_TRY(const bool has_row, worst.next());
    if (!has_row) return summary;
    summary.worst.push_back({.layer = worst.integer(0),
                             .head = worst.integer(1),
                             .block = worst.integer(2),
                             .last_token = worst.integer(3),
                             .format = worst.text(4),
                             .forecast = worst.real(5).value_or(0.0),
                             .realised = worst.real(6).value_or(0.0)});
  }
}

Result<std::vector<ForecastBin>> LogReader::forecasts() {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT s.policy, s.budget_share, b.forecast, b.realised FROM blocks b "
                               "JOIN sequences s ON s.id = b.sequence WHERE b.regret IS NOT NULL "
                               "AND b.forecast > 0 AND s.run = (SELECT max(id) FROM runs)"));
  std::map<std::tuple<std::string, double, int>, ForecastBin> bins;
  while (true) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) break;
    const double budget = query.real(1).value_or(1.0), forecast = query.real(2).value_or(0.0);
    ForecastBin& bin = bins[{query.text(0), budget, std::ilogb(forecast)}];
    bin.policy = query.text(0);
    bin.budget_share = budget;
    ++bin.num_cells;
    bin.mean_forecast += forecast;
    bin.mean_realised += query.real(3).value_or(0.0);
  }
  std::vector<ForecastBin> all;
  for (auto& [key, bin] : bins) {
    bin.mean_forecast /= static_cast<double>(bin.num_cells);
    bin.mean_realised /= static_cast<double>(bin.num_cells);
    all.push_back(std::move(bin));
  }
  return all;
}

Result<std::vector<LoggedShadows>> LogReader::shadows(ShadowSlice slice) {
  KVASIR_TRY(sqlite::Statement table, database_.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'shadows'"));
  KVASIR_TRY(const bool has_table, table.next());
  if (!has_table) return std::vector<LoggedShadows>{};
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare(fmt::format(
                 "SELECT policy, quality, budget_share, budget_bytes, {0} AS slice, count(kl), sum(kl IS NULL), "
                 "sum(downgraded), total(iif(kl IS NULL, 0, answer_tokens)), avg(kl), max(kl), avg(log_ratio), "
                 "sum(tokens_agreed) * 1.0 / sum(iif(kl IS NULL, 0, answer_tokens)), {1} AS place FROM shadows "
                 "GROUP BY policy, quality, budget_share, budget_bytes, slice "
                 "ORDER BY policy, quality, budget_share DESC, budget_bytes DESC, place, slice",
                 expression_of(slice).name, expression_of(slice).place)));
  return read_all(query, read_shadows);
}

Result<std::string> LogReader::meaning_of(const std::string& reason) {
  KVASIR_TRY(sqlite::Statement query, database_.prepare("SELECT meaning FROM reasons WHERE name = ?"));
  query.bind_all(reason);
  KVASIR_TRY(const bool has_row, query.next());
  return has_row ? query.text(0) : reason;
}

}  // namespace kvasir::journal
