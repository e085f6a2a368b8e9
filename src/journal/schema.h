// The tables of a KV log.
#pragma once

#include <string>

#include "sqlite/database.h"
#include "kvasir/result.h"

namespace kvasir::journal {

// A log that gets records: a new file gets its tables, one that has them keeps what is in it. In WAL mode.
// Errors: kBadFile (some other file, or a log of another version), kMachine (cannot be written).
Result<sqlite::Database> open_for_writing(const std::string& path);

// Errors: kBadFile (no such file, no KV log).
Result<sqlite::Database> open_for_reading(const std::string& path);

}  // namespace kvasir::journal
