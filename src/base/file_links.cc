#include "base/file_links.h"

#include <filesystem>
#include <system_error>

namespace kvasir {

std::string file_behind_links(std::string path) {
  constexpr int kMaxLinks = 40;  // as the system's own
  std::error_code error;
  for (int i = 0; i < kMaxLinks && std::filesystem::is_symlink(path, error); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

}  // namespace kvasir
