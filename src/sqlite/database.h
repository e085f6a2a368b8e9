// An SQLite database and its prepared statements, with errors as values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kvasir/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace kvasir::sqlite {

// Any bytes, bound as a BLOB.
struct Blob {
  std::string_view bytes;
};

// Compiled SQL that runs many times. Must not outlive its database. Thread safety: none.
class Statement {
 public:
  // Binds the arguments in order and runs a statement that gives no rows. NaN becomes NULL.
  template <class... Arguments>
  Status run(const Arguments&... arguments) {
    bind_all(arguments...);
    const auto has_row = next();
    if (!has_row) return std::unexpected(has_row.error());
    return {};
  }
  // Binds the arguments and starts over; the rows come with next().
  template <class... Arguments>
  void bind_all(const Arguments&... arguments) {
    reset();
    int index = 0;
    (bind(++index, arguments), ...);
  }
  // Error: kMachine (disk full, locked for too long, no memory), kBadFile (damaged).
  Result<bool> next();  // false: no more rows

  // Columns of the row that next() went to.
  std::int64_t integer(int column) const;
  std::optional<double> real(int column) const;  // nothing: NULL
  std::string text(int column) const;  // also the bytes of a BLOB

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  void reset();
  void bind(int index, std::int64_t value);
  void bind(int index, std::int32_t value) { bind(index, std::int64_t{value}); }
  void bind(int index, double value);
  void bind(int index, float value) { bind(index, double{value}); }
  void bind(int index, std::string_view value);
  void bind(int index, std::optional<double> value);
  void bind(int index, Blob value);

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Thread safety: none; may move to another thread while no call runs.
class Database {
 public:
  enum class Access : std::uint8_t { kRead, kReadWrite };  // kReadWrite makes the file when there is none

  // ":memory:" to write is a database without a file. Error naming the path: kBadFile for reading, kMachine
  // for writing.
  static Result<Database> open(const std::string& path, Access access);

  // Runs SQL without arguments, several statements at once. Error: kBadFile when the file is damaged or opened for
  // reading, kMachine without memory and otherwise.
  Status execute(const char* sql);
  // Error: likewise, when the database has not what the SQL names.
  Result<Statement> prepare(std::string_view sql);
  // The number of the row that was inserted last.
  std::int64_t last_row() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_(database) {}
  Error last_error() const;

  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace kvasir::sqlite
