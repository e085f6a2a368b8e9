#include "store/path_source.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <vector>

#include "base/env.h"
#include "base/printable.h"
#include "store/file_error.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kCopyBytes = 1 << 20;

std::filesystem::path resolve(const CatalogueEntry& entry, const std::string& text) {
  std::filesystem::path path = text;
  if (text.starts_with("~/")) path = std::filesystem::path(env_string("HOME").value_or("/")) / text.substr(2);
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored) ? path / entry.file_name : path;
}

}  // namespace

PathSource::PathSource(const CatalogueEntry& entry, const PathOrigin& origin)
    : entry_(entry), path_(resolve(entry, origin.path)) {}

Status PathSource::fetch(StagedFile& file, const std::filesystem::path&, const TransferEvents& events) {
  std::error_code error;
  if (const auto status = std::filesystem::status(path_, error);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: is not a regular file", printable_line(path_.native())));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(path_.c_str(), "rbe"), std::fclose);
  if (!input) return file_error(path_.native(), "open", errno);
  std::vector<std::byte> buffer(kCopyBytes);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), input.get())) {
    KVASIR_CHECKED(file.write({buffer.data(), count}));
    if (!events.progress({"copying", file.bytes_written(), entry_.size_bytes})) {
      return make_error(ErrorKind::kCancelled, "interrupted");
    }
  }
  if (std::ferror(input.get()) != 0) return file_error(path_.native(), "read", errno);
  return {};
}

}  // namespace kvasir::store
