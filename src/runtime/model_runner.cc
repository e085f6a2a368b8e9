#include "runtime/model_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

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
      max_logit_rows_(max_logit_rows) {}

std::span<SequenceResult> ModelRunner::run(const sched::SchedulerOutput& output,
                                           std::span<const SamplingTask> tasks) {
  CHECK(tasks.size() == output.sequences.size());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    CHECK(tasks[i].allowed.are_all() || output.sequences[i].draft_token_ids.empty());
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
  for (std::size_t i = 0; i < part.tasks.size(); ++i) {
    const bool is_wanted = part.tasks[i].want_attention_scores && part.sequences[i].samples;
    wants_attention_scores_.push_back(is_wanted ? 1 : 0);
    token_types_.push_back(part.tasks[i].token_types);
  }
  return builder.build(part.sequences, wants_attention_scores_, token_types_);
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
  // Padding rows of the head give no logit of a token: their results are hidden, so they are never chosen.
  const auto num_tokens = static_cast<std::size_t>(model_.config().num_tokens);
  const std::span<const WantedRow> chunk = std::span(wanted_).subspan(begin, end - begin);
  const bool argmax_only = std::ranges::all_of(chunk, [&](const WantedRow& wanted) {
    return wants_argmax_only(wanted, part.sequences[wanted.sequence], part.tasks[wanted.sequence]);
  });
  const model::Logits logits = model_.logits(static_cast<std::int32_t>(begin),
                                             static_cast<std::int32_t>(chunk.size()), argmax_only);
  mark_non_finite(part);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    if (part.results[chunk[i].sequence].error) continue;
    const auto row = static_cast<std::int64_t>(i);
    const auto num_tiles = static_cast<std::size_t>(logits.tile_maxima.width);
    LogitView view = {.logits = {logits.rows.row(row), num_tokens},
                      .tile_maxima = {logits.tile_maxima.row(row), num_tiles}};
    // By its own request alone: whether neighbours among the greatest become equal must not depend on company.
    const std::size_t sequence = chunk[i].sequence;
    const bool reads_all = !wants_argmax_only(chunk[i], part.sequences[sequence], part.tasks[sequence]);
    if (reads_all && model_.scale_logits(view.logits)) view.tile_maxima = {};
    read_row(chunk[i], part, view);
  }
}

void ModelRunner::read_hidden(const Part& part, std::size_t begin, std::size_t end) {
  const std::span<const WantedRow> chunk = std::span(wanted_).subspan(begin, end - begin);
  const backend::Rows rows = model_.final_hidden(static_cast<std::int32_t>(begin),
                                                 static_cast<std::int32_t>(chunk.size()));
  mark_non_finite(part);
  for (std::size_t i = 0; i < chunk.size(); ++i) {
    const WantedRow& wanted = chunk[i];
    if (part.results[wanted.sequence].error) continue;
    const float* row = rows.row(static_cast<std::int64_t>(i));
    part.tasks[wanted.sequence].embedding->add(wanted.position, {row, static_cast<std::size_t>(rows.width)});
  }
}

bool ModelRunner::wants_argmax_only(const WantedRow& wanted, const sched::ScheduledSequence& sequence,
                                    const SamplingTask& task) {
  const bool is_prompt = wanted.position < sequence.num_prompt_tokens;
  if (is_prompt && (observes(task) || task.params->prompt_logprobs)) return false;
  return !wanted.samples ||
         sampling::reads_argmax_only(*task.params, suppressed_tokens(sequence, wanted.position, task), task.allowed);
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
  if (part.num_sampled[wanted.sequence] != num_guessed) return false;
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
      .allowed = task.allowed,
      .seed = task.seed,
      .choice_index = task.choice_index,
  };
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
