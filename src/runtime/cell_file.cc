#include "runtime/cell_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/printable.h"

namespace kvasir::runtime {

Result<std::unique_ptr<CellFile>> CellFile::create(const std::string& directory, const Memory& memory,
                                                   std::function<void(std::string_view)> warn) {
  std::error_code error;
  const std::string folder =
      directory.empty() ? std::filesystem::temp_directory_path(error).string() : directory;
  if (error) {
    return make_error(ErrorKind::kMachine,
                      fmt::format("KV disk: no folder for temporary files (TMPDIR): {}", error.message()));
  }
  std::string path = folder + "/kvasir-kv-XXXXXX";
  const int file = mkostemp(path.data(), O_CLOEXEC);
  if (file < 0 || unlink(path.c_str()) != 0) {
    const int reason = errno;
    if (file >= 0) close(file);
    return make_error(ErrorKind::kMachine, fmt::format("KV disk: no file can be made in {}: {}",
                                                       printable_line(folder), std::strerror(reason)));
  }
  return std::unique_ptr<CellFile>(new CellFile(file, memory, std::move(warn)));
}

CellFile::~CellFile() { close(file_); }

bool CellFile::fail(std::string_view what) {
  if (warn_) {
    warn_(fmt::format("KV disk: the file cannot be {}: {}; what is taken out of memory may be lost", what,
                      errno == 0 ? "it is cut short" : std::strerror(errno)));
  }
  warn_ = {};
  return false;
}

bool CellFile::write(kv::KvCellRef cell, kv::KvCellRef copy, std::int32_t head_dim) {
  const std::int64_t end = kv::cell_bytes(copy.format(), head_dim);
  bytes_.resize(static_cast<std::size_t>(end));
  memory_.backend->read_cell({memory_.cells + cell.offset(), cell.format()}, copy.format(), head_dim, bytes_);
  errno = 0;
  for (std::int64_t done = 0; done < end;) {
    const ssize_t count =
        pwrite(file_, bytes_.data() + done, static_cast<std::size_t>(end - done), copy.offset() + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail("written");
    done += count;
  }
  return true;
}

bool CellFile::read(kv::KvCellRef copy, kv::KvCellRef cell, std::int32_t head_dim) {
  const std::int64_t end = kv::cell_bytes(copy.format(), head_dim);
  bytes_.resize(static_cast<std::size_t>(end));
  errno = 0;
  for (std::int64_t done = 0; done < end;) {
    const ssize_t count =
        pread(file_, bytes_.data() + done, static_cast<std::size_t>(end - done), copy.offset() + done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail("read");
    done += count;
  }
  memory_.backend->write_cell(bytes_, memory_.cells + cell.offset());
  return true;
}

}  // namespace kvasir::runtime
