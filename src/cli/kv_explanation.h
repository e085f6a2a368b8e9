// A KV log's records of a sequence, as text for a person and as JSON for a program.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "journal/log_reader.h"

namespace kvasir::cli {

// Everything that was asked for; what was not is empty.
struct KvExplanation {
  std::vector<journal::LoggedSequence> sequences;  // of one, just that
  struct Step {
    journal::LoggedStep step;
    std::vector<journal::LoggedAction> actions;
  };
  std::vector<Step> steps;
  journal::RegretSummary regrets;
  std::map<std::string, std::string> reasons;  // those of the actions, with their meaning
  std::optional<std::int64_t> token, block;

  bool has_actions() const { return token || block; }
};

// A line per sequence.
std::string sequences_text(const KvExplanation& explanation);
// A line per step of one sequence, and what its policy had not foreseen.
std::string steps_text(const KvExplanation& explanation);
// A line per block that a step touched; of one block a line per layer and head.
std::string actions_text(const KvExplanation& explanation);

void write_sequence(JsonWriter& json, const journal::LoggedSequence& sequence);
// {"sequence", "steps", "regret", "reasons"}; of a token or a block the steps have their actions instead of
// the regret.
void write_explanation(JsonWriter& json, const KvExplanation& explanation);

}  // namespace kvasir::cli
