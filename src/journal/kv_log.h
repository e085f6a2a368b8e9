// The log of what KV policies did, in an SQLite file.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "journal/record_queue.h"
#include "kv/policy/journal.h"
#include "kvasir/result.h"

namespace kvasir::journal {

// Takes records from one engine and writes them in batches on a thread of its own, of the lowest priority:
// the engine's workers go first. Should it fall behind by more than the queue holds, steps are dropped and
// the log says how many (runs.dropped_steps). A log that can no longer be written never ends a request: it
// warns once and goes on without.
//
// Thread safety: as kv::PolicyJournal wants it. Destroy it after the engine; the rest is written then, for at most
// `close_time`. A disk that takes longer keeps the thread, not its owner, and a warning says so.
class KvLog final : public kv::PolicyJournal {
 public:
  struct Options {
    std::string version;                              // of this program
    std::function<void(std::string_view line)> warn;  // called on the writing thread and at the end; must be set
    RecordQueue::Limits limits = {};
    std::chrono::milliseconds close_time{10'000};  // longer than SQLite waits for another process's lock
  };

  // Goes on with a log that is there. Errors: kBadFile (the file is something else), kMachine (it cannot be
  // written).
  static Result<std::unique_ptr<KvLog>> open(const std::string& path, Options options);
  ~KvLog() override;

  // Steps, shadows, begins and ends of sequences that found no room, or came when the log could not be written any more.
  // May be called from any thread.
  std::int64_t num_dropped() const;

  double now_ms() const override;
  void begin_run(kv::RunRecord run) override;
  void begin_sequence(kv::SequenceRecord sequence) override;
  void add_step(kv::StepRecord step) override;
  void end_sequence(kv::SequenceEnd end) override;
  void add_shadow(kv::ShadowRecord shadow) override;

 private:
  class Writer;
  explicit KvLog(std::shared_ptr<Writer> writer);

  const std::shared_ptr<Writer> writer_;  // shared with the thread
  std::thread thread_;
};

}  // namespace kvasir::journal
