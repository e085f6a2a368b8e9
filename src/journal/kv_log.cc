#include "journal/kv_log.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <semaphore>
#include <utility>

#include "base/printable.h"
#include "base/process_memory.h"
#include "journal/row_writer.h"
#include "journal/schema.h"
#include "sqlite/database.h"

namespace kvasir::journal {
namespace {

// So much comes together before it is written: fewer, larger transactions.
constexpr std::chrono::milliseconds kBatchInterval{100};
// The most records of one transaction: other processes that write to the same file wait for it.
constexpr int kMaxRecordsPerBatch = 256;
constexpr std::size_t kMaxShadows = 256;  // that wait to be written

// Where the machine has other work, this thread gets about a hundredth of a core.
void take_lowest_priority() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19); }

}  // namespace

// The thread's work and all that it needs: it may outlive the log.
class KvLog::Writer {
 public:
  Writer(std::string path, Options options, std::unique_ptr<sqlite::Database> database, RowWriter rows)
      : path_(std::move(path)),
        options_(std::move(options)),
        database_(std::move(database)),
        rows_(std::move(rows)),
        queue_(options_.limits),
        shadows_({.max_records = kMaxShadows, .max_bytes = options_.limits.max_bytes}) {}

  RecordQueue& queue() { return queue_; }
  void add_shadow(kv::ShadowRecord shadow);
  std::int64_t num_dropped() const {
    return queue_.num_dropped_steps() + queue_.num_dropped_others() + shadows_.num_dropped_others() + num_discarded_;
  }
  void run();
  // False: the thread is not done when the time is over. It says nothing from then on.
  bool close();

 private:
  void write_until_closed();
  Status write_batch(bool is_last);
  std::int64_t num_missing_steps() const { return queue_.num_dropped_steps() + rows_.num_left_out_steps(); }
  void discard_rest();
  void warn(const std::string& line);

  const std::string path_;
  const Options options_;
  const std::unique_ptr<sqlite::Database> database_;
  RowWriter rows_;
  std::int64_t num_missing_logged_ = 0;
  RecordQueue queue_;
  std::mutex shadow_mutex_;
  RecordQueue shadows_;  // guarded: pushes, which come from other threads than those of queue_
  std::atomic<std::int64_t> num_discarded_{0};
  std::binary_semaphore closing_{0}, done_{0};
  std::mutex warn_mutex_;
  bool may_warn_ = true;  // guarded: whoever hears warnings is there
};

Result<std::unique_ptr<KvLog>> KvLog::open(const std::string& path, Options options) {
  KVASIR_TRY(sqlite::Database opened, open_for_writing(path));
  auto database = std::make_unique<sqlite::Database>(std::move(opened));
  auto rows = RowWriter::create(*database, options.version);
  if (!rows) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: cannot be written: {}", printable_line(path), rows.error().message));
  }
  return std::unique_ptr<KvLog>(
      new KvLog(std::make_shared<Writer>(path, std::move(options), std::move(database), std::move(*rows))));
}

KvLog::KvLog(std::shared_ptr<Writer> writer)
    : writer_(std::move(writer)), thread_([shared = writer_] { shared->run(); }) {}

KvLog::~KvLog() { writer_->close() ? thread_.join() : thread_.detach(); }

std::int64_t KvLog::num_dropped() const { return writer_->num_dropped(); }

void KvLog::begin_run(kv::RunRecord run) { writer_->queue().push(std::move(run)); }
void KvLog::begin_sequence(kv::SequenceRecord sequence) { writer_->queue().push(std::move(sequence)); }
void KvLog::add_step(kv::StepRecord step) { writer_->queue().push(std::move(step)); }
void KvLog::end_sequence(kv::SequenceEnd end) { writer_->queue().push(std::move(end)); }
void KvLog::add_shadow(kv::ShadowRecord shadow) { writer_->add_shadow(std::move(shadow)); }

void KvLog::Writer::add_shadow(kv::ShadowRecord shadow) {
  {
    const std::lock_guard lock(shadow_mutex_);
    shadows_.push(std::move(shadow));
  }
  queue_.wake();
}

double KvLog::now_ms() const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool KvLog::Writer::close() {
  closing_.release();  // first: the thread that the other wakes reads this
  queue_.close();
  if (done_.try_acquire_for(options_.close_time)) return true;
  const std::lock_guard lock(warn_mutex_);
  may_warn_ = false;
  options_.warn(fmt::format("{}: its disk did not take the last records within {} s; they may be missing",
                            printable_line(path_), std::chrono::duration<double>(options_.close_time).count()));
  return false;
}

void KvLog::Writer::warn(const std::string& line) {
  const std::lock_guard lock(warn_mutex_);
  if (may_warn_) options_.warn(line);
}

void KvLog::Writer::run() {
  ::pthread_setname_np(::pthread_self(), "kvasir-kv-log");
  take_lowest_priority();
  claim_arena();
  try {
    write_until_closed();
  } catch (const std::exception&) {  // out of memory
    discard_rest();
  }
  done_.release();
}

void KvLog::Writer::write_until_closed() {
  for (bool is_closing = false; !is_closing;) {
    queue_.wait();
    is_closing = closing_.try_acquire_for(kBatchInterval);
    if (const Status status = write_batch(is_closing); !status) {
      warn(fmt::format("{}: cannot be written: {}; what KV policies do from here on is not logged",
                       printable_line(path_), status.error().message));
      return discard_rest();
    }
  }
  if (num_missing_steps() > 0) {
    warn(fmt::format("{}: {} steps of KV policies came too fast and are missing", printable_line(path_),
                     num_missing_steps()));
  }
}

// All that is there by now.
Status KvLog::Writer::write_batch(bool is_last) {
  bool is_empty = false;
  while (!is_empty) {
    KVASIR_CHECKED(database_->execute("BEGIN IMMEDIATE"));
    for (int i = 0; i < kMaxRecordsPerBatch && !is_empty; ++i) {
      std::optional<Record> record = queue_.pop();
      if (!record) record = shadows_.pop();
      is_empty = !record;
      if (record) KVASIR_CHECKED(rows_.write(*record));
    }
    if (const std::int64_t num_missing = num_missing_steps(); num_missing != num_missing_logged_) {
      KVASIR_CHECKED(
          rows_.write_dropped(num_missing, queue_.num_dropped_actions() + rows_.num_left_out_actions()));
      num_missing_logged_ = num_missing;
    }
    if (is_last && is_empty) KVASIR_CHECKED(rows_.end_run());
    KVASIR_CHECKED(database_->execute("COMMIT"));
  }
  return {};
}

// The engine goes on as if the log were written.
void KvLog::Writer::discard_rest() {
  while (!queue_.is_closed()) {
    queue_.wait();
    while (queue_.pop() || shadows_.pop()) ++num_discarded_;
  }
}

}  // namespace kvasir::journal
