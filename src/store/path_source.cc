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
  const bool is_inside = !entry.is_folder() && std::filesystem::is_directory(path, ignored);
  return is_inside ? path / entry.file_name : path;
}

}  // namespace

PathSource::PathSource(const CatalogueEntry& entry, const PathOrigin& origin)
    : entry_(entry), path_(resolve(entry, origin.path)) {}

Status PathSource::fetch(StagedModel& model, const std::filesystem::path&, const TransferEvents& events) {
  const std::span<StagedFile> files = model.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    KVASIR_CHECKED(copy(entry_.is_folder() ? path_ / entry_.files[i].name : path_, files[i], model, events));
  }
  return {};
}

Status PathSource::copy(const std::filesystem::path& from, StagedFile& to, const StagedModel& model,
                        const TransferEvents& events) const {
  std::error_code error;
  if (const auto status = std::filesystem::status(from, error);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: is not a regular file", printable_line(from.native())));
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> input(std::fopen(from.c_str(), "rbe"), std::fclose);
  if (!input) return file_error(from.native(), "open", errno);
  std::vector<std::byte> buffer(kCopyBytes);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), input.get())) {
    KVASIR_CHECKED(to.write({buffer.data(), count}));
    if (!events.progress({"copying", model.bytes_written(), entry_.size_bytes})) {
      return make_error(ErrorKind::kCancelled, "interrupted");
    }
  }
  if (std::ferror(input.get()) != 0) return file_error(from.native(), "read", errno);
  return {};
}

}  // namespace kvasir::store
