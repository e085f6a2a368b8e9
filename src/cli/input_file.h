// Text that a command works on, from a file or the standard input.
#pragma once

#include <cstddef>
#include <string>

#include "kvasir/result.h"

namespace kvasir::cli {

// A text to work on is no larger; /dev/zero is.
inline constexpr std::size_t kMaxInputBytes = std::size_t{256} << 20;

// The whole file. Errors: kBadFile when it is missing, a folder, unreadable or larger than `max_bytes`.
Result<std::string> read_file(const std::string& path, std::size_t max_bytes);

// As read_file; an empty file is an error too (kBadFile).
Result<std::string> read_input_file(const std::string& path, std::size_t max_bytes = kMaxInputBytes);

// Everything up to the end of the standard input. Errors: kBadFile when reading fails or there are more than
// kMaxInputBytes.
Result<std::string> read_standard_input();

// Without the newline that ends the last line of most files and of `echo`.
std::string without_final_newline(std::string text);

}  // namespace kvasir::cli
