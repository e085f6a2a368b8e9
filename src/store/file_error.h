// A failed system call on a file as an Error.
#pragma once

#include <string_view>

#include "kvasir/result.h"

namespace kvasir::store {

// "<path>: cannot <action>: <what errno says>", kMachine unless the file does not exist (kBadFile).
std::unexpected<Error> file_error(std::string_view path, std::string_view action, int error_number);

}  // namespace kvasir::store
