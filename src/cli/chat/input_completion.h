// Completion of a half-typed line by the Tab key.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::cli {

struct CompletableCommand {
  std::string_view name;                    // with its slash
  bool takes_file = false;                  // its argument is the path of a file
  std::vector<std::string> arguments = {};  // else what its first word may be
};

struct Completions {
  std::size_t begin = 0;                // of what they stand for, in the line
  std::vector<std::string> candidates;  // sorted; folders end with a slash
};

// `line` is the text before the cursor. Names of commands at its beginning, and of files or words behind a
// command that takes them; files whose names begin with a dot only when asked for so. Nothing elsewhere.
Completions complete_input(std::string_view line, std::span<const CompletableCommand> commands);

// The text that all begin with.
std::string common_prefix(std::span<const std::string> candidates);

// The path with a leading ~/ as the home folder.
std::string expand_home(std::string_view path);

}  // namespace kvasir::cli
