#include "runtime/model_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace kvasir::runtime {
namespace {

static_assert(backend::kLogitsPerTile == sampling::LogitRow::kTileSize);

bool observes(const SamplingTask& task) { return task.observer != nullptr && *task.observer; }

// Over the heads of every layer without a window.
AttentionScores sum_over_heads(std::span<const kv::StepScores> groups) {
  AttentionScores score;
  for (const kv::StepScores& group : groups) {
    score.per_block.resize(std::max(score.per_block.size(), static_cast<std::size_t>(group.num_blocks)));
    for (std::size_t i = 0; i < group.sum.size(); ++i) {
      score.per_block[i % static_cast<std::size_t>(group.num_blocks)] += group.sum[i];
    }
  }
  return score;
}

// Weights are checked when they are loaded, but products of finite ones may overflow.
Error non_finite_error(std::int32_t position) {
  return {ErrorKind::kBadFile, fmt::format("the model produced a NaN or infinity at position {}", position),
          ""};
}

// Stops are held off until min_tokens are generated. `position`: of the row that samples.
std::span<const TokenId> suppressed_tokens(const sched::ScheduledSequence& sequence, std::int32_t position,
                                           const SamplingTask& task) {
  const std::int32_t num_generated = position + 1 - sequence.num_prompt_tokens;
  return num_generated < task.params->min_tokens ? task.stop_tokens : std::span<const TokenId>();
}

}  // namespace

ModelRunner::ModelRunner(model::Model& model, backend::Backend& backend,
                         std::vector<backend::KvGroupView> kv_groups, PrefillOnlyMemory prefill_only,
                         std::int32_t max_logit_rows)
    : model_(model),
      backend_(backend),
      kv_memory_(kv_groups.front().memory),
      builder_(std::move(kv_groups), true),
      layer_builder_(std::move(prefill_only.kv_groups), false),
      hidden_(prefill_only.hidden),
      observer_(backend),
      max_logit_rows_(max_logit_rows),
      head_plan_(ceil_div<std::int64_t>(model.config().vocab_size, backend::kRowsPerGroup)) {}

std::span<SequenceResult> ModelRunner::run(const sched::SchedulerOutput& output,
                                           std::span<const SamplingTask> tasks) {
  CHECK(tasks.size() == output.sequences.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto num_masks = tasks[i].allowed_at_guesses.size();
    const auto num_guesses = output.sequences[i].draft_token_ids.size();
    CHECK(num_masks == 0 || num_masks == num_guesses);
    CHECK(tasks[i].guesses_drawn_from.empty() || tasks[i].guesses_drawn_from.size() >= num_guesses);
  }
  results_.assign(tasks.size(), SequenceResult{});
  sampled_.clear();
  sampled_.num_tokens.resize(tasks.size());
  const std::span<const sched::ScheduledSequence> sequences = output.sequences;
  const std::span<SequenceResult> results = results_;
  const std::span<std::int32_t> num_sampled = sampled_.num_tokens;
  convert_cells(*output.conversions);
  if (const std::size_t n = output.num_whole; n > 0) {
    const Part whole = {sequences.first(n), tasks.first(n), results.first(n), num_sampled.first(n)};
    model_.forward(build(builder_, whole));
    finish(whole);
  }
  if (const std::size_t n = output.num_whole; n < sequences.size()) {
    const Part part = {sequences.subspan(n), tasks.subspan(n), results.subspan(n), num_sampled.subspan(n)};
    const sched::LayerPass& pass = output.layer_pass;
    backend::Rows hidden = hidden_;
    hidden.data = hidden_.row(pass.first_hidden_row);
    model_.forward_layers(build(layer_builder_, part), {pass.first_layer, pass.end_layer}, hidden);
    finish(part);
  }
  return results_;
}

void ModelRunner::convert_cells(const kv::CellConversions& conversions) {
  conversions.for_each_round([this](std::span<const kv::CellConversion> round) {
    backend_.convert_cells(round, kv_memory_);
  });
}

const backend::BatchInput& ModelRunner::build(BatchBuilder& builder, const Part& part) {
  wants_attention_scores_.clear();
  token_types_.clear();
  adapters_.clear();
  for (std::size_t i = 0; i < part.tasks.size(); ++i) {
    const bool is_wanted = part.tasks[i].want_attention_scores && part.sequences[i].samples;
    wants_attention_scores_.push_back(is_wanted ? 1 : 0);
    token_types_.push_back(part.tasks[i].token_types);
    adapters_.push_back(part.tasks[i].adapter);
  }
  return builder.build(part.sequences, wants_attention_scores_, token_types_, adapters_);
}

// Collects the results of a forward pass, after it.
void ModelRunner::finish(const Part& part) {
  collect_wanted_rows(part);
  for (std::size_t begin = 0, end = 0; begin < wanted_.size(); begin = end) {
    end = end_of_chunk(part, begin);
    if (part.tasks[wanted_[begin].sequence].embedding != nullptr) {
      read_hidden(part, begin, end);
    } else {
      read_logits(part, begin, end);
    }
  }
  mark_non_finite(part);
  observe(part);
}

void ModelRunner::observe(const Part& part) {
  num_accepted_.clear();
  for (const std::int32_t num_tokens : part.num_sampled) num_accepted_.push_back(std::max(0, num_tokens - 1));
  observer_.observe(part.sequences, num_accepted_);
  for (std::size_t i = 0; i < part.tasks.size(); ++i) {
    if (part.tasks[i].want_attention_scores && part.sequences[i].samples) {
      const auto slice = static_cast<std::int32_t>(i);
      part.results[i].attention_scores = sum_over_heads(backend_.step_scores(slice, num_accepted_[i]));
    }
  }
}

void ModelRunner::collect_wanted_rows(const Part& part) {
  wanted_.clear();
  std::int32_t first_row = 0;
  for (std::size_t i = 0; i < part.sequences.size(); ++i) {
    const sched::ScheduledSequence& sequence = part.sequences[i];
    for (std::int32_t row = sequence.first_logits_row; row < sequence.num_tokens; ++row) {
      wanted_.push_back({.sequence = i,
                         .position = sequence.first_position + row,
                         .batch_row = first_row + row,
                         .samples = sequence.samples && row >= sequence.num_committed_tokens() - 1});
    }
    first_row += sequence.num_tokens;
  }
}

// The end of the wanted rows that are read together, from `begin` on.
std::size_t ModelRunner::end_of_chunk(const Part& part, std::size_t begin) const {
  const auto is_pooled = [&](std::size_t i) { return part.tasks[wanted_[i].sequence].embedding != nullptr; };
  const std::size_t limit = std::min(wanted_.size(), begin + static_cast<std::size_t>(max_logit_rows_));
  std::size_t end = begin + 1;
  while (end < limit && is_pooled(end) == is_pooled(begin)) ++end;
  return end;
}

void ModelRunner::read_logits(const Part& part, std::size_t begin, std::size_t end) {
  const std::span<const WantedRow> chunk = std::span(wanted_).subspan(begin, end - begin);
  plan_head(part, chunk, static_cast<std::int32_t>(begin));
  const model::Logits logits = run_head();
  mark_non_finite(part);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const std::size_t sequence = chunk[i].sequence;
    if (part.results[sequence].error) continue;
    // By its own request alone: whether neighbours among the greatest become equal must not depend on company.
    const bool is_scaled = reads_of(chunk[i], part) == HeadPlan::Reads::kAll;
    read_row(chunk[i], part, view_of(logits, i, is_scaled));
  }
}

// Somebody looks at the logits of a prompt's row.
bool ModelRunner::is_observed(const WantedRow& wanted, const Part& part) {
  const SamplingTask& task = part.tasks[wanted.sequence];
  return wanted.position < part.sequences[wanted.sequence].num_prompt_tokens &&
         (observes(task) || task.params->prompt_logprobs);
}

const sampling::AllowedTokens& ModelRunner::allowed_of(const WantedRow& wanted, const Part& part) {
  const SamplingTask& task = part.tasks[wanted.sequence];
  const auto num_guessed = wanted.position + 1 - std::ssize(part.sequences[wanted.sequence].history);
  if (num_guessed <= 0 || task.allowed_at_guesses.empty()) return task.allowed;
  return task.allowed_at_guesses[static_cast<std::size_t>(num_guessed) - 1];
}

// Where nothing may follow a guess, the answer ends with it.
bool ModelRunner::is_behind_end(const WantedRow& wanted, const Part& part) {
  const bool is_guess = wanted.position + 1 > std::ssize(part.sequences[wanted.sequence].history);
  return is_guess && allowed_of(wanted, part).count() == 0;
}

HeadPlan::Reads ModelRunner::reads_of(const WantedRow& wanted, const Part& part) {
  if (is_observed(wanted, part)) return HeadPlan::Reads::kAll;
  if (is_behind_end(wanted, part)) return HeadPlan::Reads::kNothing;
  if (!wanted.samples) return HeadPlan::Reads::kGreatest;
  const SamplingTask& task = part.tasks[wanted.sequence];
  const auto suppressed = suppressed_tokens(part.sequences[wanted.sequence], wanted.position, task);
  if (sampling::reads_no_logit(suppressed, allowed_of(wanted, part))) return HeadPlan::Reads::kNothing;
  return sampling::reads_argmax_only(*task.params, suppressed) ? HeadPlan::Reads::kGreatest : HeadPlan::Reads::kAll;
}

void ModelRunner::plan_head(const Part& part, std::span<const WantedRow> chunk, std::int32_t first_row) {
  head_plan_.clear();
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const bool is_masked = chunk[i].samples && !is_observed(chunk[i], part);
    head_plan_.add(first_row + static_cast<std::int32_t>(i), reads_of(chunk[i], part),
                   is_masked ? allowed_of(chunk[i], part) : sampling::AllowedTokens::all());
  }
  head_plan_.decide();
}

model::Logits ModelRunner::run_head() {
  model::Logits logits;
  if (!head_plan_.whole().empty()) logits = model_.logits(head_plan_.whole(), 0, {});
  if (!head_plan_.searched().empty()) logits = search_head();
  for (std::size_t i = 0; i < head_plan_.num_parts(); ++i) {
    const HeadPlan::Part part = head_plan_.part(i);
    logits = model_.logits({&part.row, 1}, part.place, {.groups = part.groups});
  }
  return logits;
}

// The greatest logit has the same bits either way. A search reads half of the head, and pays for each row.
model::Logits ModelRunner::search_head() {
  using Clock = std::chrono::steady_clock;
  const std::span<const std::int32_t> rows = head_plan_.searched();
  const std::int32_t place = head_plan_.first_searched_place();
  const model::WantedLogits search = {.argmax_only = true, .allowed = head_plan_.allowed()};
  if (rows.size() > head_ways_.size()) return model_.logits(rows, place, search);
  FasterWay& ways = head_ways_[rows.size() - 1];
  const std::size_t way = ways.next();
  const Clock::time_point begin = Clock::now();
  const model::Logits logits = model_.logits(rows, place, way == 0 ? search : model::WantedLogits{});
  ways.observe(way, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  return logits;
}

// Padding rows of the head give no logit of a token: their results are hidden, so they are never chosen.
ModelRunner::LogitView ModelRunner::view_of(const model::Logits& logits, std::size_t i, bool is_scaled) {
  const std::optional<std::int32_t> place = head_plan_.place(i);
  if (!place) return {};
  const auto num_tokens = static_cast<std::size_t>(model_.config().num_tokens);
  LogitView view = {.logits = backend_.host_row(logits.rows, *place).first(num_tokens), .tile_maxima = {}};
  const std::optional<HeadPlan::Part> part = head_plan_.part_of(i);
  if (!part) {
    view.tile_maxima = backend_.host_row(logits.tile_maxima, *place);
    if (is_scaled && model_.scale_logits(view.logits)) view.tile_maxima = {};
    return view;
  }
  for (std::size_t g = 0; is_scaled && g < part->groups.size(); ++g) {
    const std::size_t first = static_cast<std::size_t>(part->groups[g]) * backend::kRowsPerGroup;
    if (first >= num_tokens) break;
    const std::size_t count = std::min<std::size_t>(backend::kRowsPerGroup, num_tokens - first);
    if (!model_.scale_logits(view.logits.subspan(first, count))) break;
  }
  return view;
}

void ModelRunner::read_hidden(const Part& part, std::size_t begin, std::size_t end) {
  const std::span<const WantedRow> chunk = std::span(wanted_).subspan(begin, end - begin);
  const backend::Rows rows = model_.final_hidden(static_cast<std::int32_t>(begin),
                                                 static_cast<std::int32_t>(chunk.size()));
  mark_non_finite(part);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const WantedRow& wanted = chunk[i];
    if (part.results[wanted.sequence].error) continue;
    part.tasks[wanted.sequence].embedding->add(wanted.position,
                                               backend_.host_row(rows, static_cast<std::int64_t>(i)));
  }
}

void ModelRunner::read_row(const WantedRow& wanted, const Part& part, const LogitView& row) {
  const sched::ScheduledSequence& sequence = part.sequences[wanted.sequence];
  const SamplingTask& task = part.tasks[wanted.sequence];
  SequenceResult& result = part.results[wanted.sequence];
  if (wanted.position < sequence.num_prompt_tokens) {
    if (observes(task)) (*task.observer)(wanted.position, row.logits);
    const auto next = static_cast<std::size_t>(wanted.position) + 1;
    if (task.params->prompt_logprobs && wanted.position + 1 < sequence.num_prompt_tokens) {
      auto logprobs = sampling::logprobs_of(row.logits, sequence.history[next], *task.params->prompt_logprobs,
                                            scratch_);
      if (!logprobs) {
        result.error = std::move(logprobs.error());
        return;
      }
      result.prompt_logprobs.push_back(std::move(*logprobs));
    }
  }
  if (wanted.samples && is_reached(wanted, part)) sample(wanted, part, row);
}

// A row behind a guess counts when all rows before it sampled the guesses.
bool ModelRunner::is_reached(const WantedRow& wanted, const Part& part) const {
  const sched::ScheduledSequence& sequence = part.sequences[wanted.sequence];
  const auto num_guessed = wanted.position + 1 - static_cast<std::int32_t>(sequence.history.size());
  if (part.num_sampled[wanted.sequence] != num_guessed || is_behind_end(wanted, part)) return false;
  if (num_guessed == 0) return true;
  return sampled_.tokens.back().token == sequence.draft_token_ids[static_cast<std::size_t>(num_guessed) - 1];
}

// Called for the rows of a sequence in order.
std::span<const TokenId> ModelRunner::generated_before(const WantedRow& wanted,
                                                       const sched::ScheduledSequence& sequence) {
  const auto committed = sequence.history.subspan(static_cast<std::size_t>(sequence.num_prompt_tokens));
  const auto num_guessed = wanted.position + 1 - static_cast<std::int32_t>(sequence.history.size());
  if (num_guessed == 0) return committed;
  if (num_guessed == 1) generated_.assign(committed.begin(), committed.end());
  generated_.push_back(sequence.draft_token_ids[static_cast<std::size_t>(num_guessed) - 1]);
  return generated_;
}

void ModelRunner::sample(const WantedRow& wanted, const Part& part, const LogitView& row) {
  const sched::ScheduledSequence& sequence = part.sequences[wanted.sequence];
  const SamplingTask& task = part.tasks[wanted.sequence];
  SequenceResult& result = part.results[wanted.sequence];
  if (backend_.non_finite_rows()[static_cast<std::size_t>(wanted.batch_row)] != 0) {
    result.error = non_finite_error(wanted.position);
    return;
  }
  sampling::SampleInput input{
      .logits = row.logits,
      .tile_maxima = row.tile_maxima,
      .params = *task.params,
      .prompt = sequence.history.first(static_cast<std::size_t>(sequence.num_prompt_tokens)),
      .generated = generated_before(wanted, sequence),
      .suppressed = suppressed_tokens(sequence, wanted.position, task),
      .allowed = allowed_of(wanted, part),
      .seed = task.seed,
      .choice_index = task.choice_index,
      .guess_distribution = task.guess_distribution,
  };
  // The row's own token may have been guessed too.
  const auto num_guessed = static_cast<std::size_t>(part.num_sampled[wanted.sequence]);
  if (num_guessed < sequence.draft_token_ids.size() && !task.guesses_drawn_from.empty()) {
    input.guess_drawn_from = &task.guesses_drawn_from[num_guessed];
    input.guess = sequence.draft_token_ids[num_guessed];
  }
  auto output = sampling::sample(input, scratch_);
  if (!output) {
    result.error = std::move(output.error());
    return;
  }
  sampled_.tokens.push_back({.token = output->token, .logprobs = std::move(output->logprobs)});
  ++part.num_sampled[wanted.sequence];
}

// A guess's row is no error of its sequence unless it counts, see sample().
void ModelRunner::mark_non_finite(const Part& part) {
  const auto flags = backend_.non_finite_rows();
  std::int32_t row = 0;
  for (std::size_t i = 0; i < part.sequences.size(); ++i) {
    const sched::ScheduledSequence& sequence = part.sequences[i];
    for (std::int32_t r = 0; r < sequence.num_committed_tokens(); ++r) {
      if (flags[static_cast<std::size_t>(row + r)] == 0 || part.results[i].error) continue;
      part.results[i].error = non_finite_error(sequence.first_position + r);
    }
    row += sequence.num_tokens;
  }
}

}  // namespace kvasir::runtime
