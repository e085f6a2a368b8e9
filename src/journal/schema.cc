#include "journal/schema.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/printable.h"

namespace kvasir::journal {
namespace {

constexpr std::int64_t kApplicationId = 0x4b564c47;  // "KVLG"
constexpr std::int64_t kSchemaVersion = 4;
constexpr std::int64_t kVersionWithoutShadows = 3;  // otherwise it is the same

// Shares and forecasts are of the attention of one query: 1 is all that it pays, in one layer and KV head,
// mean over the query heads. Blocks are 16 tokens each, from token 16 * block.
constexpr const char* kTables = R"sql(
CREATE TABLE runs(              -- a loaded model
  id INTEGER PRIMARY KEY,
  started_at TEXT NOT NULL,     -- UTC
  ended_at TEXT,                -- NULL: still running, or cut off
  version TEXT NOT NULL,
  model TEXT NOT NULL,
  dropped_steps INTEGER NOT NULL DEFAULT 0,    -- not logged: the writer could not keep up
  dropped_actions INTEGER NOT NULL DEFAULT 0);
CREATE TABLE formats(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE reasons(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, meaning TEXT NOT NULL);
CREATE TABLE run_formats(       -- what a cell of a format takes, and what attention paid to it loses
  run INTEGER NOT NULL, format INTEGER NOT NULL, bytes INTEGER NOT NULL, cost REAL,
  PRIMARY KEY(run, format)) WITHOUT ROWID;
CREATE TABLE sequences(         -- with a KV policy; one that was preempted comes back as another
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  request INTEGER NOT NULL,     -- counted from 1 in a run
  choice INTEGER NOT NULL,
  client_id TEXT NOT NULL,      -- e.g. "chatcmpl-..."; may be empty
  policy TEXT NOT NULL,
  budget_share REAL NOT NULL,
  budget_bytes INTEGER NOT NULL,    -- 0: none
  max_lost_share REAL NOT NULL,
  only_at_tokens INTEGER NOT NULL,  -- 0: acts whenever blocks have become full
  forecast_version INTEGER NOT NULL,  -- of --kv-learn; 0: it was not learned from traffic
  prompt_tokens INTEGER NOT NULL,
  tokens INTEGER,               -- computed when it ended
  bytes_share REAL,             -- bytes_after of the last step
  bytes_share_peak REAL);
CREATE TABLE steps(             -- the policy of a sequence acted
  id INTEGER PRIMARY KEY,
  sequence INTEGER NOT NULL,
  token INTEGER NOT NULL,       -- tokens computed by then
  planned INTEGER NOT NULL,     -- 0: wishes for shared blocks came true; the policy was not asked
  bytes_before REAL,            -- of what budget_share is of: f16, layers without a window
  bytes_after REAL,
  lost_max REAL,                -- attention in memory that was paid to what is gone: the most in a layer and head
  lost_mean REAL,
  actions INTEGER NOT NULL,
  waiting INTEGER NOT NULL,     -- cells that others hold too and have not agreed about
  no_room INTEGER NOT NULL,     -- 1: the rest of the plan waits for memory
  policy_ms REAL,
  record_ms REAL);              -- gathering this record
CREATE INDEX steps_by_token ON steps(sequence, token);
CREATE TABLE step_formats(step INTEGER NOT NULL, format INTEGER NOT NULL, cells INTEGER NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY(step, format)) WITHOUT ROWID;
CREATE TABLE actions(           -- a cell became coarser
  step INTEGER NOT NULL, layer INTEGER NOT NULL, head INTEGER NOT NULL, block INTEGER NOT NULL,
  from_format INTEGER NOT NULL, to_format INTEGER NOT NULL, reason INTEGER NOT NULL,
  shared INTEGER NOT NULL,      -- 1: others hold the block too, and agreed
  forecast REAL,                -- attention that each later query was expected to pay; NULL: the policy has none
  price REAL,                   -- expected loss per byte that it saved
  PRIMARY KEY(step, layer, head, block)) WITHOUT ROWID;
CREATE TABLE blocks(            -- a cell's life, of those that were touched, when its sequence has ended
  sequence INTEGER NOT NULL, layer INTEGER NOT NULL, head INTEGER NOT NULL, block INTEGER NOT NULL,
  first_token INTEGER NOT NULL, last_token INTEGER NOT NULL,  -- tokens computed at the first and last change
  changes INTEGER NOT NULL,
  from_format INTEGER NOT NULL, format INTEGER NOT NULL,
  forecast REAL,                -- at the last change
  realised REAL,                -- attention that each query since then paid, the later the more it counts
  regret REAL,                  -- realised - forecast
  PRIMARY KEY(sequence, layer, head, block)) WITHOUT ROWID;
CREATE VIEW named_actions AS
  SELECT s.sequence, s.token, a.layer, a.head, a.block, f.name AS from_format, t.name AS to_format,
         r.name AS reason, a.shared, a.forecast, a.price
  FROM actions a JOIN steps s ON s.id = a.step JOIN formats f ON f.id = a.from_format
       JOIN formats t ON t.id = a.to_format JOIN reasons r ON r.id = a.reason;
)sql";

constexpr const char* kShadowTable = R"sql(
CREATE TABLE shadows(           -- answers that --kv-shadow chose to be scored again by the exact path
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  request INTEGER NOT NULL,     -- as in sequences; one without a policy has no row there
  client_id TEXT NOT NULL,
  tenant TEXT NOT NULL,         -- may be empty
  scored_at TEXT NOT NULL,      -- UTC
  policy TEXT NOT NULL,         -- that served it
  quality TEXT NOT NULL,        -- exact, gate, best_effort
  budget_share REAL NOT NULL,
  budget_bytes INTEGER NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL,   -- of the prompt
  answer_tokens INTEGER NOT NULL,
  downgraded INTEGER NOT NULL,  -- 1: another policy served it than was asked for
  kl REAL,                      -- nats a token, a lower bound; NULL: not scored, or the policy had not acted
  log_ratio REAL,               -- log-probability of the chosen tokens, served less exact, the mean
  tokens_agreed INTEGER);       -- at which the likeliest token is the same
)sql";

Result<std::int64_t> read_number(sqlite::Database& database, const char* sql) {
  KVASIR_TRY(sqlite::Statement statement, database.prepare(sql));
  KVASIR_TRY(const bool has_row, statement.next());
  return has_row ? statement.integer(0) : 0;
}

Error refusal(const std::string& path, std::string_view what) {
  return {ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(path), what), ""};
}

// Its version. SQLite reads a file only when it is asked something.
Result<std::int64_t> version_of_log(const std::string& path, sqlite::Database& database) {
  const auto application_id = read_number(database, "PRAGMA application_id");
  if (!application_id || *application_id != kApplicationId) {
    return std::unexpected(refusal(path, "is no KV log of kvasir"));
  }
  KVASIR_TRY(const std::int64_t version, read_number(database, "PRAGMA user_version"));
  if (version == kSchemaVersion || version == kVersionWithoutShadows) return version;
  return std::unexpected(refusal(
      path, fmt::format("is a KV log of version {}; this kvasir knows versions {} and {}", version, kVersionWithoutShadows, kSchemaVersion)));
}

// The tables that are not there. All or nothing: another process may be making the same.
Status make_tables(sqlite::Database& database) {
  KVASIR_CHECKED(database.execute("BEGIN IMMEDIATE"));
  const auto num_tables = read_number(database, "SELECT count(*) FROM sqlite_schema");
  const auto version = read_number(database, "PRAGMA user_version");
  Status status = {};
  if (num_tables && *num_tables == 0) {
    status = database.execute(fmt::format("PRAGMA application_id = {};\n{}", kApplicationId, kTables).c_str());
  }
  if (status && version && *version != kSchemaVersion) {
    status = database.execute(fmt::format("PRAGMA user_version = {};\n{}", kSchemaVersion, kShadowTable).c_str());
  }
  KVASIR_CHECKED(database.execute(status ? "COMMIT" : "ROLLBACK"));
  return status;
}

}  // namespace

Result<sqlite::Database> open_for_writing(const std::string& path) {
  KVASIR_TRY(sqlite::Database database, sqlite::Database::open(path, sqlite::Database::Access::kReadWrite));
  const auto num_tables = read_number(database, "SELECT count(*) FROM sqlite_schema");
  if (!num_tables || *num_tables > 0) KVASIR_CHECKED(version_of_log(path, database));
  // NORMAL: a power cut may take the last records, never the file.
  Status status = database.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;");
  if (status) status = make_tables(database);
  if (status) return database;
  return make_error(ErrorKind::kMachine,
                    fmt::format("{}: cannot be written: {}", printable_line(path), status.error().message));
}

Result<sqlite::Database> open_for_reading(const std::string& path) {
  if (!std::ifstream(path, std::ios::binary)) {
    return std::unexpected(refusal(path, fmt::format("cannot be read: {}", std::strerror(errno))));
  }
  KVASIR_TRY(sqlite::Database database, sqlite::Database::open(path, sqlite::Database::Access::kRead));
  KVASIR_CHECKED(version_of_log(path, database));
  return database;
}

}  // namespace kvasir::journal
