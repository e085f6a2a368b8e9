// The lines that were typed in earlier conversations.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::cli {

// One message a line, with \n and \\ for newline and backslash, the oldest first; only its owner may read it.
// Several chats may write it at the same time: each message is appended under a lock.
//
// Thread safety: none.
class HistoryFile {
 public:
  explicit HistoryFile(std::string path) : path_(std::move(path)) {}

  // $XDG_STATE_HOME/kvasir/history, else ~/.local/state/kvasir/history; nothing without a home.
  static std::optional<std::string> default_path();

  // The last kMaxEntries; a file of twice as many or of more than kMaxBytes is cut down to them. Empty when
  // it is not there. Error (kMachine): it cannot be made, read or written.
  Result<std::vector<std::string>> load();
  // Longer messages than kMaxEntryBytes are left out. Errors: as load.
  Status append(std::string_view message);

  static constexpr std::size_t kMaxEntries = 1000;
  static constexpr std::size_t kMaxEntryBytes = std::size_t{16} << 10;
  static constexpr std::size_t kMaxBytes = std::size_t{4} << 20;

 private:
  std::string path_;
};

}  // namespace kvasir::cli
