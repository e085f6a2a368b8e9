#include "journal/row_writer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "kv/policy/served_forecast.h"

namespace kvasir::journal {
namespace {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::chrono::system_clock::now()));
}

Result<std::int64_t> number_of_name(sqlite::Database& database, std::string_view table, std::string_view name) {
  KVASIR_TRY(sqlite::Statement find, database.prepare(fmt::format("SELECT id FROM {} WHERE name = ?", table)));
  find.bind_all(name);
  KVASIR_TRY(const bool is_known, find.next());
  return is_known ? find.integer(0) : 0;
}

Result<std::vector<std::int64_t>> format_numbers(sqlite::Database& database) {
  KVASIR_TRY(sqlite::Statement insert, database.prepare("INSERT OR IGNORE INTO formats(name) VALUES (?)"));
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < kv::kNumKvFormats; ++i) {
    const std::string_view name = kv::name_of(static_cast<kv::KvFormat>(i));
    KVASIR_CHECKED(insert.run(name));
    KVASIR_TRY(numbers.emplace_back(), number_of_name(database, "formats", name));
  }
  return numbers;
}

Result<std::vector<std::int64_t>> reason_numbers(sqlite::Database& database) {
  KVASIR_TRY(sqlite::Statement insert,
             database.prepare("INSERT OR IGNORE INTO reasons(name, meaning) VALUES (?, ?)"));
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < kv::kNumActionReasons; ++i) {
    const auto reason = static_cast<kv::ActionReason>(i);
    KVASIR_CHECKED(insert.run(kv::name_of(reason), kv::meaning_of(reason)));
    KVASIR_TRY(numbers.emplace_back(), number_of_name(database, "reasons", kv::name_of(reason)));
  }
  return numbers;
}

}  // namespace

RowWriter::RowWriter(sqlite::Database& database, std::string version, Statements statements, Numbers formats,
                     Numbers reasons)
    : database_(&database),
      version_(std::move(version)),
      statements_(std::move(statements)),
      formats_(std::move(formats)),
      reasons_(std::move(reasons)) {}

Result<RowWriter> RowWriter::create(sqlite::Database& database, const std::string& version) {
  KVASIR_TRY(Numbers formats, format_numbers(database));
  KVASIR_TRY(Numbers reasons, reason_numbers(database));
  KVASIR_TRY(sqlite::Statement run,
             database.prepare("INSERT INTO runs(started_at, version, model) VALUES (?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement run_format, database.prepare("INSERT INTO run_formats VALUES (?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement sequence,
             database.prepare("INSERT INTO sequences(run, request, choice, client_id, policy, budget_share, "
                              "budget_bytes, max_lost_share, only_at_tokens, forecast_version, prompt_tokens) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_TRY(
      sqlite::Statement step,
      database.prepare("INSERT INTO steps(sequence, token, planned, bytes_before, bytes_after, lost_max, "
                       "lost_mean, actions, waiting, no_room, policy_ms, record_ms) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement step_format, database.prepare("INSERT INTO step_formats VALUES (?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement action, database.prepare("INSERT INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement block,
             database.prepare("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement sequence_end,
             database.prepare(
                 "UPDATE sequences SET tokens = ?2, bytes_share = ?3, bytes_share_peak = ?4 WHERE id = ?1"));
  KVASIR_TRY(sqlite::Statement shadow,
             database.prepare("INSERT INTO shadows(run, request, client_id, tenant, scored_at, policy, quality, budget_share, "
                              "budget_bytes, prompt_tokens, cached_tokens, answer_tokens, downgraded, kl, log_ratio, tokens_agreed) "
                              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_TRY(sqlite::Statement dropped,
             database.prepare("UPDATE runs SET dropped_steps = ?2, dropped_actions = ?3 WHERE id = ?1"));
  KVASIR_TRY(sqlite::Statement run_end, database.prepare("UPDATE runs SET ended_at = ?2 WHERE id = ?1"));
  return RowWriter(
      database, version,
      {std::move(run), std::move(run_format), std::move(sequence), std::move(step), std::move(step_format),
       std::move(action), std::move(block), std::move(sequence_end), std::move(shadow), std::move(dropped), std::move(run_end)},
      std::move(formats), std::move(reasons));
}

Status RowWriter::write(const Record& record) {
  if (const auto* run = std::get_if<kv::RunRecord>(&record)) return write_run(*run);
  if (const auto* sequence = std::get_if<kv::SequenceRecord>(&record)) return write_sequence(*sequence);
  if (const auto* step = std::get_if<kv::StepRecord>(&record)) return write_step(*step);
  if (const auto* shadow = std::get_if<kv::ShadowRecord>(&record)) return write_shadow(*shadow);
  return write_end(std::get<kv::SequenceEnd>(record));
}

Status RowWriter::write_run(const kv::RunRecord& run) {
  run_ = run;
  KVASIR_CHECKED(statements_.run.run(utc_now(), version_, run.model));
  run_row_ = database_->last_row();
  for (int i = 0; i < kv::kNumKvFormats; ++i) {
    const auto format = static_cast<kv::KvFormat>(i);
    const float cost = run.format_costs[format];
    KVASIR_CHECKED(statements_.run_format.run(run_row_, number_of(format),
                                              kv::cell_bytes(format, run.head_dim),
                                              cost < 0.0f ? kv::kNoForecast : cost));
  }
  return {};
}

Status RowWriter::write_sequence(const kv::SequenceRecord& sequence) {
  const kv::KvPolicySettings& policy = sequence.policy;
  const kv::KvHolder& holder = sequence.holder;
  KVASIR_CHECKED(statements_.sequence.run(run_row_, static_cast<std::int64_t>(holder.request_id),
                                          holder.choice, std::string_view(holder.client_id),
                                          policy.policy == nullptr ? "none" : policy.policy->name(),
                                          policy.budget_share, policy.budget_bytes, policy.max_lost_share,
                                          policy.only_at_tokens, policy.forecast != nullptr ? policy.forecast->version : 0,
                                          holder.num_prompt_tokens));
  sequences_[static_cast<std::int64_t>(sequence.hold)].row = database_->last_row();
  return {};
}

Status RowWriter::write_step(const kv::StepRecord& step) {
  const auto sequence = sequences_.find(static_cast<std::int64_t>(step.hold));
  if (sequence == sequences_.end()) {
    ++num_left_out_steps_;
    num_left_out_actions_ += std::ssize(step.actions);
    return {};
  }
  const auto if_planned = [&](double value) { return step.is_planned ? std::optional(value) : std::nullopt; };
  KVASIR_CHECKED(statements_.step.run(
      sequence->second.row, step.num_computed_tokens, std::int64_t{step.is_planned},
      if_planned(step.bytes_share_before), if_planned(step.bytes_share_after), step.lost_share_max,
      step.lost_share_mean, static_cast<std::int64_t>(step.actions.size()), step.num_waiting,
      std::int64_t{step.ran_out_of_room}, if_planned(step.policy_ms), if_planned(step.record_ms)));
  const std::int64_t row = database_->last_row();
  for (std::size_t i = 0; i < step.num_cells.size(); ++i) {
    if (step.num_cells[i] == 0) continue;
    const auto format = static_cast<kv::KvFormat>(i);
    KVASIR_CHECKED(statements_.step_format.run(row, number_of(format), step.num_cells[i],
                                               step.num_cells[i] * kv::cell_bytes(format, run_.head_dim)));
  }
  KVASIR_CHECKED(write_actions(step, row));
  sequence->second.lifetimes.add(step);
  return {};
}

Status RowWriter::write_actions(const kv::StepRecord& step, std::int64_t step_row) {
  for (const kv::ActionRecord& action : step.actions) {
    const Place place = place_of(action.group, action.cell);
    KVASIR_CHECKED(
        statements_.action.run(step_row, place.layer, place.head, action.block, number_of(action.from),
                               number_of(action.to), reasons_[static_cast<std::size_t>(action.reason)],
                               std::int64_t{action.is_shared}, share_of(action.forecast), price_of(action)));
  }
  return {};
}

Status RowWriter::write_end(const kv::SequenceEnd& end) {
  const auto found = sequences_.find(static_cast<std::int64_t>(end.hold));
  if (found == sequences_.end()) return {};
  const OpenSequence sequence = std::move(found->second);
  sequences_.erase(found);
  KVASIR_CHECKED(statements_.sequence_end.run(sequence.row, end.num_computed_tokens,
                                              end.bytes_use.last_share(), end.bytes_use.peak_share()));
  for (const BlockLifetime& life : sequence.lifetimes.ordered()) {
    const Place place = place_of(life.group, life.cell);
    const double forecast = share_of(life.forecast);
    const double realised = share_of(realised_attention(life, end).value_or(kv::kNoForecast));
    KVASIR_CHECKED(statements_.block.run(sequence.row, place.layer, place.head, life.block, life.first_token,
                                         life.last_token, life.num_changes, number_of(life.from),
                                         number_of(life.format), forecast, realised, realised - forecast));
  }
  return {};
}

Status RowWriter::write_shadow(const kv::ShadowRecord& shadow) {
  const auto if_scored = [&](double value) { return shadow.is_scored ? std::optional(value) : std::nullopt; };
  return statements_.shadow.run(run_row_, static_cast<std::int64_t>(shadow.request_id), std::string_view(shadow.client_id),
                                std::string_view(shadow.tenant), utc_now(), std::string_view(shadow.policy),
                                std::string_view(shadow.quality), shadow.budget_share, shadow.budget_bytes,
                                shadow.num_prompt_tokens, shadow.num_cached_tokens, shadow.num_answer_tokens,
                                std::int64_t{shadow.is_downgraded}, if_scored(shadow.kl), if_scored(shadow.log_ratio),
                                if_scored(static_cast<double>(shadow.num_tokens_agreed)));
}

Status RowWriter::write_dropped(std::int64_t num_steps, std::int64_t num_actions) {
  return statements_.dropped.run(run_row_, num_steps, num_actions);
}

Status RowWriter::end_run() {
  if (run_row_ == 0) return {};
  return statements_.run_end.run(run_row_, utc_now());
}

RowWriter::Place RowWriter::place_of(std::int32_t group, std::int32_t cell) const {
  const kv::RunRecord::Group& layers = run_.groups[static_cast<std::size_t>(group)];
  return {layers.layers[static_cast<std::size_t>(cell / layers.num_kv_heads)], cell % layers.num_kv_heads};
}

double RowWriter::share_of(float attention) const {
  return static_cast<double>(attention) / run_.query_heads_per_kv_head;
}

// The loss that the policy expects for each byte that it saves, in the unit of the formats' costs.
double RowWriter::price_of(const kv::ActionRecord& action) const {
  const kv::FormatCosts& costs = run_.format_costs;
  const std::int64_t saved =
      kv::cell_bytes(action.from, run_.head_dim) - kv::cell_bytes(action.to, run_.head_dim);
  if (saved <= 0) return kv::kNoForecast;
  return share_of(action.forecast) * (costs[action.to] - std::max(0.0f, costs[action.from])) /
         static_cast<double>(saved);
}

}  // namespace kvasir::journal
