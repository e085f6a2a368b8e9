#include "sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>

#include "base/printable.h"

namespace kvasir::sqlite {
namespace {

// Another process may be writing to the same file.
constexpr int kBusyTimeoutMs = 5000;

// A file that is damaged or only read is to blame itself, and never for a lack of memory.
ErrorKind kind_of(int code, bool is_read) {
  switch (code & 0xff) {  // without SQLite's details
    case SQLITE_NOMEM:
      return ErrorKind::kMachine;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:  // it has not the tables that it should have
      return ErrorKind::kBadFile;
    default:
      return is_read ? ErrorKind::kBadFile : ErrorKind::kMachine;
  }
}

Error last_error_of(sqlite3* database) {
  const char* path = sqlite3_db_filename(database, "main");
  const bool is_read = sqlite3_db_readonly(database, "main") == 1;
  return {kind_of(sqlite3_errcode(database), is_read),
          fmt::format("{}: {}", path == nullptr || *path == '\0' ? "the database in memory" : printable_line(path),
                      printable_line(sqlite3_errmsg(database))),
          ""};
}

std::string percent_encoded(std::string_view path) {
  std::string encoded;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      encoded += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      encoded += c;
    }
  }
  return encoded;
}

// The URI with which SQLite opens `path` to read. A file without a write-ahead log has no writer, and as
// "immutable" it can be read in a folder where nothing can be written and leaves no files of SQLite's beside
// it.
std::string uri_to_read(const std::string& path) {
  std::error_code ignored;
  const bool has_writer = std::filesystem::exists(path + "-wal", ignored);
  const std::string absolute = std::filesystem::absolute(path, ignored).string();
  return fmt::format("file://{}?{}", percent_encoded(absolute), has_writer ? "mode=ro" : "immutable=1");
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::reset() { sqlite3_reset(statement_.get()); }

Result<bool> Statement::next() {
  const int outcome = sqlite3_step(statement_.get());
  if (outcome == SQLITE_ROW) return true;
  sqlite3* database = sqlite3_db_handle(statement_.get());
  if (outcome != SQLITE_DONE) {
    Error error = last_error_of(database);
    reset();
    return std::unexpected(std::move(error));
  }
  reset();
  return false;
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::optional<double> Statement::real(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Statement::bind(int index, std::int64_t value) { sqlite3_bind_int64(statement_.get(), index, value); }
void Statement::bind(int index, double value) { sqlite3_bind_double(statement_.get(), index, value); }
void Statement::bind(int index, std::string_view value) {
  sqlite3_bind_text(statement_.get(), index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
}
void Statement::bind(int index, std::optional<double> value) {
  if (value) return bind(index, *value);
  sqlite3_bind_null(statement_.get(), index);
}

void Statement::bind(int index, Blob value) {
  sqlite3_bind_blob64(statement_.get(), index, value.bytes.data(), value.bytes.size(), SQLITE_TRANSIENT);
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

Result<Database> Database::open(const std::string& path, Access access) {
  const bool writes = access == Access::kReadWrite;
  const int flags =
      (writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI) |
      SQLITE_OPEN_NOMUTEX;
  sqlite3* opened = nullptr;
  const int outcome =
      sqlite3_open_v2((writes ? path : uri_to_read(path)).c_str(), &opened, flags, nullptr);
  Database database(opened);  // also of a failure: it holds the message
  if (outcome != SQLITE_OK) {
    return make_error(opened == nullptr || writes ? ErrorKind::kMachine : ErrorKind::kBadFile,
                      fmt::format("{}: cannot be opened: {}", printable_line(path),
                                  opened == nullptr ? "out of memory" : sqlite3_errmsg(opened)));
  }
  sqlite3_busy_timeout(opened, kBusyTimeoutMs);
  return database;
}

Status Database::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return std::unexpected(last_error());
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement, nullptr) != SQLITE_OK) {
    return std::unexpected(last_error());
  }
  return Statement(statement);
}

std::int64_t Database::last_row() const { return sqlite3_last_insert_rowid(database_.get()); }

Error Database::last_error() const { return last_error_of(database_.get()); }

}  // namespace kvasir::sqlite
