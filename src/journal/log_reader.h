// The contents of a KV log, for a person who asks why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sqlite/database.h"
#include "kvasir/result.h"

namespace kvasir::journal {

// Names and units are those of the log's tables (journal/schema.cc).
struct LoggedSequence {
  std::int64_t id = 0;
  std::int64_t run = 0;
  std::string started_at;  // its run
  std::string model;
  std::int64_t request = 0;
  std::int64_t choice = 0;
  std::string client_id;
  std::string policy;
  double budget_share = 1.0;
  std::int64_t budget_bytes = 0;
  double max_lost_share = 1.0;
  std::int64_t prompt_tokens = 0;
  std::optional<std::int64_t> tokens;  // nothing: it has not ended
  std::optional<double> bytes_share;
  std::int64_t num_steps = 0;
  std::int64_t num_actions = 0;
  std::int64_t num_dropped_steps = 0;  // of its run: some may have been its own
};

struct FormatUse {
  std::string format;
  std::int64_t cells = 0;
  std::int64_t bytes = 0;
};

struct LoggedStep {
  std::int64_t id = 0;
  std::int64_t token = 0;
  bool is_planned = true;
  std::optional<double> bytes_before, bytes_after;
  std::optional<double> lost_max, lost_mean;
  std::int64_t num_actions = 0;
  std::int64_t num_waiting = 0;
  bool has_no_room = false;
  std::optional<double> policy_ms, record_ms;
  std::vector<FormatUse> formats;  // the most cells first
};

struct LoggedAction {
  std::int64_t layer = 0, head = 0, block = 0;
  std::string from, to;
  std::string reason;
  bool is_shared = false;
  std::optional<double> forecast;
  std::optional<double> price;
};

// A cell that got more attention than its policy had expected.
struct Regret {
  std::int64_t layer = 0, head = 0, block = 0;
  std::int64_t last_token = 0;
  std::string format;
  double forecast = 0.0, realised = 0.0;
};

// A summary over all cells of a sequence whose attention is known.
struct RegretSummary {
  std::int64_t num_cells = 0;
  std::int64_t num_regretted = 0;  // realised more than forecast
  double mean_forecast = 0.0, mean_realised = 0.0;
  std::vector<Regret> worst;
};

// Cells of one policy and budget whose forecasts lie within one power of two.
struct ForecastBin {
  std::string policy;
  double budget_share = 1.0;
  std::int64_t num_cells = 0;
  double mean_forecast = 0.0, mean_realised = 0.0;
};

// Answers of one policy, quality and budget that were chosen to be scored, of those a slice.
struct LoggedShadows {
  std::string policy, quality;
  double budget_share = 1.0;
  std::int64_t budget_bytes = 0;
  std::string slice;  // empty where there are none
  std::int64_t num_scored = 0, num_unknown = 0, num_downgraded = 0, num_tokens = 0;  // tokens of those that were scored
  std::optional<double> kl, kl_worst, log_ratio, top1;  // over answers; top1 over tokens; nothing: none was scored
};

enum class ShadowSlice : std::uint8_t { kNone, kPromptLength, kAnswerLength, kCachedShare, kTenant };

// Thread safety: none. Errors of every member: kMachine (damaged file).
class LogReader {
 public:
  // Errors: kBadFile (no such file, no KV log).
  static Result<LogReader> open(const std::string& path);

  Result<std::vector<LoggedSequence>> sequences();
  // Nothing: no such sequence.
  Result<std::optional<LoggedSequence>> find_sequence(std::int64_t id);
  // In the order in which they happened.
  Result<std::vector<LoggedStep>> steps(std::int64_t sequence);
  // Those in which the policy first acted once `token` tokens were computed; empty when it did not any more.
  Result<std::vector<LoggedStep>> steps_at(std::int64_t sequence, std::int64_t token);
  // By block, layer and head; of one block or of all.
  Result<std::vector<LoggedAction>> actions(std::int64_t step, std::optional<std::int64_t> block);
  Result<RegretSummary> regrets(std::int64_t sequence, std::int64_t max_worst);
  // Forecast and realised attention in the file's last run, by policy, budget and forecast. It covers cells
  // whose attention is known and whose forecast is above 0.
  Result<std::vector<ForecastBin>> forecasts();
  // By policy, quality, budget and slice. Empty for a log of a version that had none.
  Result<std::vector<LoggedShadows>> shadows(ShadowSlice slice);
  // The sentence behind the name of a reason.
  Result<std::string> meaning_of(const std::string& reason);

 private:
  explicit LogReader(sqlite::Database database) : database_(std::move(database)) {}
  Result<std::vector<LoggedSequence>> select_sequences(std::optional<std::int64_t> id);
  Result<std::vector<LoggedStep>> select_steps(std::string_view condition, std::int64_t sequence,
                                               std::int64_t token);

  sqlite::Database database_;
};

}  // namespace kvasir::journal
