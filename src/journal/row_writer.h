// Records as rows of a KV log.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "journal/block_lifetimes.h"
#include "sqlite/database.h"
#include "journal/record_queue.h"
#include "kvasir/result.h"

namespace kvasir::journal {

// Writes inside the transactions of its caller. Thread safety: none.
class RowWriter {
 public:
  // `database` is a log and must outlive the writer. Error: kMachine.
  static Result<RowWriter> create(sqlite::Database& database, const std::string& version);

  // Errors: kMachine. A step whose sequence's begin was dropped is left out, and counted.
  Status write(const Record& record);
  std::int64_t num_left_out_steps() const { return num_left_out_steps_; }
  std::int64_t num_left_out_actions() const { return num_left_out_actions_; }
  // How many records never came.
  Status write_dropped(std::int64_t num_steps, std::int64_t num_actions);
  // After the last record.
  Status end_run();

 private:
  struct Statements {
    sqlite::Statement run, run_format, sequence, step, step_format, action, block, sequence_end, shadow, dropped, run_end;
  };
  // A number in the log per enumerator: it may have been written by a version that had others.
  using Numbers = std::vector<std::int64_t>;
  struct OpenSequence {
    std::int64_t row = 0;
    BlockLifetimes lifetimes;
  };
  struct Place {
    std::int32_t layer, head;
  };

  RowWriter(sqlite::Database& database, std::string version, Statements statements, Numbers formats, Numbers reasons);
  Status write_run(const kv::RunRecord& run);
  Status write_sequence(const kv::SequenceRecord& sequence);
  Status write_step(const kv::StepRecord& step);
  Status write_actions(const kv::StepRecord& step, std::int64_t step_row);
  Status write_end(const kv::SequenceEnd& end);
  Status write_shadow(const kv::ShadowRecord& shadow);
  std::int64_t number_of(kv::KvFormat format) const { return formats_[static_cast<std::size_t>(format)]; }
  Place place_of(std::int32_t group, std::int32_t cell) const;
  double share_of(float attention) const;
  double price_of(const kv::ActionRecord& action) const;

  sqlite::Database* database_;
  std::string version_;
  Statements statements_;
  Numbers formats_, reasons_;
  kv::RunRecord run_;
  std::int64_t run_row_ = 0;
  std::unordered_map<std::int64_t, OpenSequence> sequences_;  // by hold
  std::int64_t num_left_out_steps_ = 0, num_left_out_actions_ = 0;
};

}  // namespace kvasir::journal
