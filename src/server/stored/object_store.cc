#include "server/stored/object_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>

#include "base/printable.h"

namespace kvasir::server::stored {
namespace {

constexpr std::int64_t kRowBytes = 256;
constexpr std::int64_t kSchemaVersion = 1;
constexpr std::int64_t kApplicationId = 0x4b766173;  // "Kvas"

constexpr const char* kTables = R"(
CREATE TABLE IF NOT EXISTS objects(
  row INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind INTEGER NOT NULL, owner TEXT NOT NULL,
  parent TEXT NOT NULL, created INTEGER NOT NULL, expires INTEGER NOT NULL, used INTEGER NOT NULL,
  pinned INTEGER NOT NULL, bytes INTEGER NOT NULL, json TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS objects_by_owner ON objects(kind, owner, row);
CREATE INDEX IF NOT EXISTS objects_by_use ON objects(kind, owner, pinned, used);
CREATE INDEX IF NOT EXISTS objects_by_expiry ON objects(expires) WHERE expires > 0;
CREATE TABLE IF NOT EXISTS parts(
  object INTEGER NOT NULL REFERENCES objects(row) ON DELETE CASCADE, number INTEGER NOT NULL,
  name TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (object, number));
)";

constexpr const char* kEraseUnseen = "DELETE FROM objects WHERE pinned = 2";
constexpr const char* kColumns = "id, kind, owner, parent, created, expires, pinned, json";

Object read_object(const sqlite::Statement& row) {
  return {.kind = static_cast<Kind>(row.integer(1)),
          .id = row.text(0),
          .owner = row.text(2),
          .parent = row.text(3),
          .created_s = row.integer(4),
          .expires_s = row.integer(5),
          .is_pinned = row.integer(6) != 0,
          .json = row.text(7)};
}

std::int64_t number(Kind kind) { return static_cast<std::int64_t>(kind); }

Status prepare_folder(const std::string& directory, const std::string& path) {
  const auto failed = [](const std::string& what, const std::string& why) {
    return make_error(ErrorKind::kMachine, fmt::format("--state-dir: {}: {}", printable_line(what), why),
                      "state-dir");
  };
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return failed(directory, error.message());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return failed(path, std::strerror(errno));
  const bool is_private = ::fchmod(fd, 0600) == 0;
  ::close(fd);
  if (!is_private) return failed(path, "its permissions cannot be set");
  return {};
}

// `path` is empty for a store in memory, whose only error is the lack of it.
Error opening_error(Error error, const std::string& path) {
  if (path.empty()) {
    error.message = "stored responses: " + error.message + " (see ulimit -v)";
  } else if (error.message.ends_with("is locked")) {
    error.message = fmt::format("--state-dir: {}: another server uses it", printable_line(path));
  } else if (error.kind == ErrorKind::kBadFile) {
    error.message = fmt::format("--state-dir: {}; move the file away to begin anew", error.message);
  } else {
    error.message = "--state-dir: " + error.message;
  }
  return error;
}

std::int64_t bytes_of(const Object& object, const std::vector<Part>& parts) {
  std::int64_t bytes = kRowBytes + std::ssize(object.json);
  for (const Part& part : parts) bytes += std::ssize(part.bytes) + std::ssize(part.name);
  return bytes;
}

// A statement whose first row is one number.
Result<std::int64_t> read_number(sqlite::Database& database, const char* sql) {
  KVASIR_TRY(sqlite::Statement statement, database.prepare(sql));
  statement.bind_all();
  KVASIR_TRY(const bool has_row, statement.next());
  return has_row ? statement.integer(0) : 0;
}

// In one transaction, undone when the task fails.
template <class Task>
Status in_transaction(sqlite::Database& database, Task task) {
  KVASIR_CHECKED(database.execute("BEGIN IMMEDIATE"));
  Status done = task();
  if (done) done = database.execute("COMMIT");
  if (!done) static_cast<void>(database.execute("ROLLBACK"));
  return done;
}

}  // namespace

ObjectStore::ObjectStore(sqlite::Database database, const Options& options)
    : database_(std::move(database)), options_(options) {}

ObjectStore::~ObjectStore() {
  if (is_ready_) static_cast<void>(database_.execute(kEraseUnseen));
}

Result<std::unique_ptr<ObjectStore>> ObjectStore::open(const Options& options) {
  const bool in_memory = options.directory.empty();
  const std::string path = in_memory ? ":memory:" : options.directory + "/stored.sqlite";
  if (!in_memory) KVASIR_CHECKED(prepare_folder(options.directory, path));
  KVASIR_TRY(sqlite::Database database, sqlite::Database::open(path, sqlite::Database::Access::kReadWrite));
  std::unique_ptr<ObjectStore> store(new ObjectStore(std::move(database), options));
  if (const Status prepared = store->prepare(); !prepared) {
    return std::unexpected(opening_error(prepared.error(), in_memory ? std::string() : path));
  }
  return store;
}

Status ObjectStore::prepare() {
  KVASIR_CHECKED(database_.execute("PRAGMA busy_timeout = 500; PRAGMA locking_mode = EXCLUSIVE;"
                                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
                                   "PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY"));
  KVASIR_TRY(const std::int64_t application, read_number(database_, "PRAGMA application_id"));
  KVASIR_TRY(const std::int64_t num_tables, read_number(database_, "SELECT count(*) FROM sqlite_schema"));
  KVASIR_TRY(const std::int64_t version, read_number(database_, "PRAGMA user_version"));
  if (num_tables > 0 && application != kApplicationId) {
    return make_error(ErrorKind::kBadFile, options_.directory + "/stored.sqlite is another program's database");
  }
  if (version > kSchemaVersion) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}/stored.sqlite has version {}, this program knows up to {}",
                                  options_.directory, version, kSchemaVersion));
  }
  const std::string marks = fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId,
                                        kSchemaVersion);
  const Status made = in_transaction(database_, [&]() -> Status {
    KVASIR_CHECKED(database_.execute(kTables));
    return database_.execute(marks.c_str());
  });
  KVASIR_CHECKED(made);
  KVASIR_CHECKED(database_.execute(kEraseUnseen));
  KVASIR_TRY(clock_, read_number(database_, "SELECT coalesce(max(used), 0) FROM objects"));
  KVASIR_CHECKED(load_usage());
  is_ready_ = true;
  return {};
}

Status ObjectStore::load_usage() {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT kind, owner, sum(bytes), count(*) FROM objects GROUP BY kind, owner"));
  query.bind_all();
  for (;;) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return {};
    const std::int64_t kind = query.integer(0);
    if (kind < 0 || kind >= kNumKinds) return make_error(ErrorKind::kBadFile, "an object of no known kind");
    count({static_cast<Kind>(kind), query.text(1)}, query.integer(2), query.integer(3));
  }
}

void ObjectStore::count(const Owner& owner, std::int64_t bytes, std::int64_t objects) {
  Usage& total = total_[static_cast<std::size_t>(owner.first)];
  total.bytes += bytes;
  total.objects += objects;
  Usage& usage = usage_[owner];
  usage.bytes += bytes;
  usage.objects += objects;
  if (usage.objects == 0) usage_.erase(owner);
}

Status ObjectStore::add(const Object& object, const std::vector<Part>& parts) {
  return add_as(object, parts, object.is_pinned ? Pin::kPinned : Pin::kNone);
}

Status ObjectStore::begin_unseen(const Object& object, std::int64_t expected_bytes) {
  KVASIR_CHECKED(check_size(object.kind, expected_bytes));
  return add_as(object, {}, Pin::kUnseen);
}

Status ObjectStore::show(const Object& object) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT row, ?2 - length(CAST(json AS BLOB)) FROM objects WHERE id = ?1 AND pinned = 2"));
  query.bind_all(std::string_view(object.id), std::ssize(object.json));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return make_error(ErrorKind::kNotFound, "it is not there any more");
  const std::int64_t row = query.integer(0), grown = query.integer(1);
  static_cast<void>(query.next());
  KVASIR_TRY(sqlite::Statement change,
             database_.prepare("UPDATE objects SET json = ?, created = ?, expires = ?, used = ?, pinned = 0, "
                               "bytes = bytes + ? WHERE row = ?"));
  KVASIR_CHECKED(change.run(std::string_view(object.json), object.created_s, object.expires_s, ++clock_, grown, row));
  count({object.kind, object.owner}, grown, 0);
  return {};
}

Status ObjectStore::erase_unseen(const std::string& id) {
  KVASIR_TRY(sqlite::Statement query, database_.prepare("SELECT row FROM objects WHERE id = ? AND pinned = 2"));
  query.bind_all(std::string_view(id));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return {};
  const std::int64_t row = query.integer(0);
  static_cast<void>(query.next());
  return erase_row(row);
}

Status ObjectStore::add_as(const Object& object, const std::vector<Part>& parts, Pin pin) {
  const std::int64_t bytes = bytes_of(object, parts);
  KVASIR_CHECKED(drop_expired());
  KVASIR_CHECKED(make_room(object.kind, bytes, 1));
  KVASIR_CHECKED(in_transaction(database_, [&] { return add_in_transaction(object, parts, bytes, pin); }));
  count({object.kind, object.owner}, bytes, 1);
  return {};
}

Status ObjectStore::add_in_transaction(const Object& object, const std::vector<Part>& parts,
                                       std::int64_t bytes, Pin pin) {
  KVASIR_TRY(sqlite::Statement insert,
             database_.prepare("INSERT INTO objects(id, kind, owner, parent, created, expires, used, pinned, "
                               "bytes, json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  KVASIR_CHECKED(insert.run(std::string_view(object.id), number(object.kind), std::string_view(object.owner),
                            std::string_view(object.parent), object.created_s, object.expires_s, ++clock_,
                            static_cast<std::int64_t>(pin), bytes, std::string_view(object.json)));
  const std::int64_t row = database_.last_row();
  KVASIR_TRY(sqlite::Statement insert_part, database_.prepare("INSERT INTO parts VALUES (?, ?, ?, ?)"));
  std::int64_t index = 0;
  for (const Part& part : parts) {
    KVASIR_CHECKED(insert_part.run(row, index++, std::string_view(part.name), sqlite::Blob{part.bytes}));
  }
  return {};
}

Status ObjectStore::append(const std::string& id, const Part& part) {
  KVASIR_TRY(sqlite::Statement query, database_.prepare("SELECT kind, owner, row, bytes FROM objects WHERE id = ?"));
  query.bind_all(std::string_view(id));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return make_error(ErrorKind::kNotFound, "it is not there any more");
  const Owner owner(static_cast<Kind>(query.integer(0)), query.text(1));
  const std::int64_t row = query.integer(2), bytes_before = query.integer(3);
  static_cast<void>(query.next());  // ends the read
  const std::int64_t bytes = std::ssize(part.bytes) + std::ssize(part.name);
  KVASIR_CHECKED(check_size(owner.first, bytes_before + bytes));  // before others leave for it
  KVASIR_CHECKED(make_room(owner.first, bytes, 0));
  const Status appended = in_transaction(database_, [&]() -> Status {
    KVASIR_TRY(sqlite::Statement insert,
               database_.prepare("INSERT INTO parts SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3 "
                                 "FROM parts WHERE object = ?1"));
    KVASIR_CHECKED(insert.run(row, std::string_view(part.name), sqlite::Blob{part.bytes}));
    KVASIR_TRY(sqlite::Statement grow, database_.prepare("UPDATE objects SET bytes = bytes + ? WHERE row = ?"));
    return grow.run(bytes, row);
  });
  KVASIR_CHECKED(appended);
  count(owner, bytes, 0);
  return {};
}

Result<std::optional<Object>> ObjectStore::find(Kind kind, const std::string& owner, const std::string& id) {
  KVASIR_CHECKED(drop_expired());
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare(fmt::format("SELECT {} FROM objects WHERE id = ? AND kind = ? AND owner = ? AND "
                                           "pinned < 2",
                                           kColumns)));
  query.bind_all(std::string_view(id), number(kind), std::string_view(owner));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return std::optional<Object>();
  std::optional<Object> found = read_object(query);
  static_cast<void>(query.next());
  KVASIR_TRY(sqlite::Statement use, database_.prepare("UPDATE objects SET used = ? WHERE id = ?"));
  KVASIR_CHECKED(use.run(++clock_, std::string_view(id)));
  return found;
}

Result<bool> ObjectStore::erase(Kind kind, const std::string& owner, const std::string& id) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT row FROM objects WHERE id = ? AND kind = ? AND owner = ? AND pinned < 2"));
  query.bind_all(std::string_view(id), number(kind), std::string_view(owner));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return false;
  const std::int64_t row = query.integer(0);
  static_cast<void>(query.next());
  KVASIR_CHECKED(erase_row(row));
  return true;
}

Status ObjectStore::erase_row(std::int64_t row) {
  KVASIR_TRY(sqlite::Statement remove,
             database_.prepare("DELETE FROM objects WHERE row = ? RETURNING kind, owner, bytes"));
  remove.bind_all(row);
  KVASIR_TRY(const bool has_row, remove.next());
  if (!has_row) return {};
  const Owner owner(static_cast<Kind>(remove.integer(0)), remove.text(1));
  const std::int64_t bytes = remove.integer(2);
  KVASIR_TRY(const bool has_more, remove.next());
  static_cast<void>(has_more);
  count(owner, -bytes, -1);
  return {};
}

Result<bool> ObjectStore::update(const std::string& id, std::string_view json, bool is_pinned) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT kind, owner, row, length(CAST(json AS BLOB)) FROM objects "
                               "WHERE id = ? AND pinned = 1"));
  query.bind_all(std::string_view(id));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return false;
  const Owner owner(static_cast<Kind>(query.integer(0)), query.text(1));
  const std::int64_t row = query.integer(2), grown = std::ssize(json) - query.integer(3);
  static_cast<void>(query.next());
  if (grown > 0) KVASIR_CHECKED(make_room(owner.first, grown, 0));
  KVASIR_TRY(sqlite::Statement change,
             database_.prepare("UPDATE objects SET json = ?, pinned = ?, bytes = bytes + ? WHERE row = ?"));
  KVASIR_CHECKED(change.run(json, std::int64_t{is_pinned}, grown, row));
  count(owner, grown, 0);
  return true;
}

Result<bool> ObjectStore::set_status(const std::string& id, std::string_view status,
                                     std::string_view error_json, bool is_pinned) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT CASE ?2 WHEN '' THEN json_set(json, '$.status', ?1) ELSE "
                               "json_set(json, '$.status', ?1, '$.error', json(?2)) END "
                               "FROM objects WHERE id = ?3 AND pinned = 1"));
  query.bind_all(status, error_json, std::string_view(id));
  KVASIR_TRY(const bool has_row, query.next());
  if (!has_row) return false;
  const std::string json = query.text(0);
  static_cast<void>(query.next());
  return update(id, json, is_pinned);
}

Status ObjectStore::pin(const std::string& id, bool is_pinned) {
  KVASIR_TRY(sqlite::Statement change, database_.prepare("UPDATE objects SET pinned = ? WHERE id = ?"));
  return change.run(std::int64_t{is_pinned}, std::string_view(id));
}

Result<ObjectStore::Piece> ObjectStore::read(const std::string& id, std::int64_t first,
                                             std::int64_t max_bytes) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT number, bytes FROM parts WHERE object = (SELECT row FROM objects "
                               "WHERE id = ?) AND number >= ? ORDER BY number"));
  query.bind_all(std::string_view(id), first);
  Piece piece{.bytes = {}, .next = first};
  for (;;) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) {
      piece.is_last = true;
      return piece;
    }
    std::string bytes = query.text(1);
    if (piece.next > first && std::ssize(piece.bytes) + std::ssize(bytes) > max_bytes) return piece;
    piece.bytes += bytes;
    piece.next = query.integer(0) + 1;
  }
}

Result<std::int64_t> ObjectStore::content_bytes(const std::string& id) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT coalesce(sum(length(bytes)), 0) FROM parts WHERE object = "
                               "(SELECT row FROM objects WHERE id = ?)"));
  query.bind_all(std::string_view(id));
  KVASIR_TRY(const bool has_row, query.next());
  return has_row ? query.integer(0) : 0;
}

Result<std::vector<std::string>> ObjectStore::part_names(const std::string& id) {
  KVASIR_TRY(sqlite::Statement query, database_.prepare("SELECT name FROM parts WHERE object = (SELECT row "
                                                        "FROM objects WHERE id = ?) ORDER BY number"));
  query.bind_all(std::string_view(id));
  std::vector<std::string> names;
  for (;;) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return names;
    names.push_back(query.text(0));
  }
}

Result<ObjectStore::Listing> ObjectStore::list(Kind kind, const std::string& owner, const std::string& parent,
                                               const std::string& after, std::int64_t limit,
                                               bool is_descending) {
  KVASIR_CHECKED(drop_expired());
  Listing listing;
  std::int64_t row = is_descending ? std::numeric_limits<std::int64_t>::max() : 0;
  if (!after.empty()) {
    KVASIR_TRY(sqlite::Statement find,
               database_.prepare("SELECT row FROM objects WHERE id = ? AND kind = ? AND owner = ?"));
    find.bind_all(std::string_view(after), number(kind), std::string_view(owner));
    KVASIR_TRY(listing.knows_after, find.next());
    if (!listing.knows_after) return listing;
    row = find.integer(0);
  }
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare(fmt::format(
                 "SELECT {} FROM objects WHERE kind = ?1 AND owner = ?2 AND row {} ?3 AND (?4 = '' OR parent = ?4) "
                 "AND pinned < 2 ORDER BY row {} LIMIT ?5",
                 kColumns, is_descending ? "<" : ">", is_descending ? "DESC" : "ASC")));
  query.bind_all(number(kind), std::string_view(owner), row, std::string_view(parent), limit + 1);
  for (;;) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return listing;
    if (std::ssize(listing.objects) == limit) {
      listing.has_more = true;
      return listing;
    }
    listing.objects.push_back(read_object(query));
  }
}

Result<std::vector<Object>> ObjectStore::pinned(Kind kind) {
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare(fmt::format("SELECT {} FROM objects WHERE kind = ? AND pinned = 1 ORDER BY row",
                                           kColumns)));
  query.bind_all(number(kind));
  std::vector<Object> objects;
  for (;;) {
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return objects;
    objects.push_back(read_object(query));
  }
}

std::int64_t ObjectStore::used_bytes(Kind kind) const { return total_[static_cast<std::size_t>(kind)].bytes; }

std::int64_t ObjectStore::num_objects(Kind kind) const {
  return total_[static_cast<std::size_t>(kind)].objects;
}

Status ObjectStore::drop_expired() {
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  for (;;) {
    KVASIR_TRY(sqlite::Statement query,
               database_.prepare("SELECT row FROM objects WHERE expires > 0 AND expires <= ? AND pinned = 0 LIMIT 1"));
    query.bind_all(now);
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) return {};
    const std::int64_t row = query.integer(0);
    static_cast<void>(query.next());
    KVASIR_CHECKED(erase_row(row));
  }
}

Status ObjectStore::check_size(Kind kind, std::int64_t bytes) const {
  const std::int64_t max_bytes = options_.bounds[static_cast<std::size_t>(kind)].max_bytes;
  if (bytes <= max_bytes) return {};
  return make_error(ErrorKind::kUnmet,
                    fmt::format("{} bytes, and all that is stored of this kind may have {} (--state-dir, --state-bytes)", bytes, max_bytes));
}

Status ObjectStore::make_room(Kind kind, std::int64_t bytes, std::int64_t objects) {
  const Bounds& bounds = options_.bounds[static_cast<std::size_t>(kind)];
  KVASIR_CHECKED(check_size(kind, bytes));
  const Usage& total = total_[static_cast<std::size_t>(kind)];
  while (total.bytes + bytes > bounds.max_bytes || total.objects + objects > bounds.max_objects) {
    const std::int64_t was = total.objects;
    KVASIR_TRY(const bool dropped, drop_oldest(kind));
    if (!dropped || total.objects == was) {
      return make_error(ErrorKind::kUnavailable,
                        fmt::format("no room: what is being worked on has {} of {} bytes (--state-bytes), {} of {} places",
                                    total.bytes, bounds.max_bytes, total.objects, bounds.max_objects));
    }
  }
  return {};
}

// Drops from the owner with the greatest part of either bound that has something to lose.
Result<bool> ObjectStore::drop_oldest(Kind kind) {
  const Bounds& bounds = options_.bounds[static_cast<std::size_t>(kind)];
  std::vector<std::pair<double, std::string>> owners;
  for (const auto& [owner, usage] : usage_) {
    if (owner.first != kind) continue;
    const double bytes = static_cast<double>(usage.bytes) / static_cast<double>(bounds.max_bytes);
    const double objects = static_cast<double>(usage.objects) / static_cast<double>(bounds.max_objects);
    owners.emplace_back(-std::max(bytes, objects), owner.second);
  }
  std::ranges::sort(owners);
  KVASIR_TRY(sqlite::Statement query,
             database_.prepare("SELECT row FROM objects WHERE kind = ? AND owner = ? AND pinned = 0 "
                               "ORDER BY used LIMIT 1"));
  for (const auto& [share, owner] : owners) {
    query.bind_all(number(kind), std::string_view(owner));
    KVASIR_TRY(const bool has_row, query.next());
    if (!has_row) continue;
    const std::int64_t row = query.integer(0);
    static_cast<void>(query.next());
    KVASIR_CHECKED(erase_row(row));
    return true;
  }
  return false;
}

}  // namespace kvasir::server::stored
