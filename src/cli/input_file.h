// Text that a command works on, from a file or the standard input.
#pragma once

#include <string>

#include "kvasir/result.h"

namespace kvasir::cli {

// The whole file. Errors: kBadFile when it is missing, a folder, unreadable or empty.
Result<std::string> read_input_file(const std::string& path);

// Everything up to the end of the standard input. Error: kBadFile when reading fails.
Result<std::string> read_standard_input();

// Without the newline that ends the last line of most files and of `echo`.
std::string without_final_newline(std::string text);

}  // namespace kvasir::cli
