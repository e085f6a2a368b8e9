// The log of what KV policies did, in an SQLite file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>

#include "sqlite/database.h"
#include "journal/record_queue.h"
#include "journal/row_writer.h"
#include "kv/policy/journal.h"
#include "kvasir/result.h"

namespace kvasir::journal {

// Takes records from one engine and writes them in batches on a thread of its own, of the lowest priority:
// the engine's workers go first. Should it fall behind by more than the queue holds, steps are dropped and
// the log says how many (runs.dropped_steps). A log that can no longer be written never ends a request: it
// warns once and goes on without.
//
// Thread safety: as kv::PolicyJournal wants it. Destroy it after the engine; the rest is written then.
class KvLog final : public kv::PolicyJournal {
 public:
  struct Options {
    std::string version;                              // of this program
    std::function<void(std::string_view line)> warn;  // called on the writing thread; must be set
    RecordQueue::Limits limits = {};
  };

  // Goes on with a log that is there. Errors: kBadFile (the file is something else), kMachine (it cannot be
  // written).
  static Result<std::unique_ptr<KvLog>> open(const std::string& path, Options options);
  ~KvLog() override;

  // Steps, begins and ends of sequences that found no room, or came when the log could not be written any more.
  // May be called from any thread.
  std::int64_t num_dropped() const;

  double now_ms() const override;
  void begin_run(kv::RunRecord run) override { queue_.push(std::move(run)); }
  void begin_sequence(kv::SequenceRecord sequence) override { queue_.push(std::move(sequence)); }
  void add_step(kv::StepRecord step) override { queue_.push(std::move(step)); }
  void end_sequence(kv::SequenceEnd end) override { queue_.push(std::move(end)); }

 private:
  KvLog(std::string path, Options options, std::unique_ptr<sqlite::Database> database, RowWriter rows);
  void write_until_closed();
  Status write_batch(bool is_last);
  std::int64_t num_missing_steps() const { return queue_.num_dropped_steps() + rows_.num_left_out_steps(); }
  void discard_rest();

  const std::string path_;
  const Options options_;
  const std::unique_ptr<sqlite::Database> database_;
  RowWriter rows_;
  std::int64_t num_missing_logged_ = 0;
  RecordQueue queue_;
  std::atomic<std::int64_t> num_discarded_{0};
  std::binary_semaphore closing_{0};
  std::thread thread_;  // last: everything else exists while it runs
};

}  // namespace kvasir::journal
