#include "journal/kv_log.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/printable.h"
#include "journal/schema.h"

namespace kvasir::journal {
namespace {

// So much comes together before it is written: fewer, larger transactions.
constexpr std::chrono::milliseconds kBatchInterval{100};
// The most records of one transaction: other processes that write to the same file wait for it.
constexpr int kMaxRecordsPerBatch = 256;

// Where the machine has other work, this thread gets about a hundredth of a core.
void take_lowest_priority() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 19); }

}  // namespace

Result<std::unique_ptr<KvLog>> KvLog::open(const std::string& path, Options options) {
  KVASIR_TRY(sqlite::Database opened, open_for_writing(path));
  auto database = std::make_unique<sqlite::Database>(std::move(opened));
  auto rows = RowWriter::create(*database, options.version);
  if (!rows) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("{}: cannot be written: {}", printable_line(path), rows.error().message));
  }
  return std::unique_ptr<KvLog>(new KvLog(path, std::move(options), std::move(database), std::move(*rows)));
}

KvLog::KvLog(std::string path, Options options, std::unique_ptr<sqlite::Database> database, RowWriter rows)
    : path_(std::move(path)),
      options_(std::move(options)),
      database_(std::move(database)),
      rows_(std::move(rows)),
      queue_(options_.limits),
      thread_([this] { write_until_closed(); }) {}

KvLog::~KvLog() {
  closing_.release();  // first: the thread that the other wakes reads this
  queue_.close();
  thread_.join();
}

std::int64_t KvLog::num_dropped() const {
  return queue_.num_dropped_steps() + queue_.num_dropped_others() + num_discarded_;
}

double KvLog::now_ms() const {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return Milliseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void KvLog::write_until_closed() {
  ::pthread_setname_np(::pthread_self(), "kvasir-kv-log");
  take_lowest_priority();
  for (bool is_closing = false; !is_closing;) {
    queue_.wait();
    is_closing = closing_.try_acquire_for(kBatchInterval);
    if (const Status status = write_batch(is_closing); !status) {
      options_.warn(fmt::format("{}: cannot be written: {}; what KV policies do from here on is not logged",
                                printable_line(path_), status.error().message));
      return discard_rest();
    }
  }
  if (num_missing_steps() > 0) {
    options_.warn(fmt::format("{}: {} steps of KV policies came too fast and are missing",
                              printable_line(path_), num_missing_steps()));
  }
}

// All that is there by now.
Status KvLog::write_batch(bool is_last) {
  bool is_empty = false;
  while (!is_empty) {
    KVASIR_CHECKED(database_->execute("BEGIN IMMEDIATE"));
    for (int i = 0; i < kMaxRecordsPerBatch && !is_empty; ++i) {
      const std::optional<Record> record = queue_.pop();
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
void KvLog::discard_rest() {
  while (!queue_.is_closed()) {
    queue_.wait();
    while (queue_.pop()) ++num_discarded_;
  }
}

}  // namespace kvasir::journal
