#include "store/file_error.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

#include "base/printable.h"

namespace kvasir::store {

std::unexpected<Error> file_error(std::string_view path, std::string_view action, int error_number) {
  const bool missing = error_number == ENOENT || error_number == ENOTDIR;
  return make_error(missing ? ErrorKind::kBadFile : ErrorKind::kMachine,
                    fmt::format("{}: cannot {}: {}", printable_line(path), action,
                                std::generic_category().message(error_number)));
}

}  // namespace kvasir::store
