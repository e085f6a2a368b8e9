#include "store/wheel.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <zip.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/printable.h"

namespace kvasir::store {
namespace {

constexpr std::size_t kWheelReadBytes = 1 << 20;

using Archive = std::unique_ptr<zip_t, decltype([](zip_t* archive) { zip_discard(archive); })>;
using Member = std::unique_ptr<zip_file_t, decltype([](zip_file_t* member) { zip_fclose(member); })>;

std::unexpected<Error> bad(const std::filesystem::path& wheel, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable(wheel.filename().native(), 200),
                                                     printable(problem, 300)));
}

Result<Archive> open_archive(const std::filesystem::path& wheel) {
  int code = 0;
  Archive archive(zip_open(wheel.c_str(), ZIP_RDONLY, &code));
  if (archive) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return bad(wheel, "not a readable wheel: " + message);
}

Result<zip_uint64_t> find_member(zip_t* archive, const std::filesystem::path& wheel,
                                 const std::string& glob) {
  std::optional<zip_uint64_t> found;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* name = zip_get_name(archive, index, 0);
    if (name == nullptr || ::fnmatch(glob.c_str(), name, 0) != 0) continue;
    if (found) return bad(wheel, fmt::format("several members match {}", glob));
    found = index;
  }
  if (!found) return bad(wheel, fmt::format("none of its {} members matches {}", count, glob));
  return *found;
}

}  // namespace

Status read_wheel_member(const std::filesystem::path& wheel, const std::string& glob,
                         const std::function<Status(std::span<const std::byte>)>& sink) {
  KVASIR_TRY(const Archive archive, open_archive(wheel));
  KVASIR_TRY(const zip_uint64_t index, find_member(archive.get(), wheel, glob));
  const Member member(zip_fopen_index(archive.get(), index, 0));
  if (!member) return bad(wheel, zip_strerror(archive.get()));
  std::vector<std::byte> buffer(kWheelReadBytes);
  while (true) {
    const zip_int64_t count = zip_fread(member.get(), buffer.data(), buffer.size());
    if (count < 0) return bad(wheel, zip_file_strerror(member.get()));
    if (count == 0) return {};
    KVASIR_CHECKED(sink({buffer.data(), static_cast<std::size_t>(count)}));
  }
}

}  // namespace kvasir::store
