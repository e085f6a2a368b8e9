#include "cli/input_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/printable.h"
#include "base/units.h"

namespace kvasir::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::unexpected<Error> unreadable(const std::string& name) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: cannot be read: {}", printable_line(name), std::strerror(errno)));
}

Result<std::string> read_stream(std::FILE* stream, const std::string& name, std::size_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> piece;
  std::size_t num_bytes = 0;
  while ((num_bytes = std::fread(piece.data(), 1, piece.size(), stream)) > 0) {
    if (num_bytes > max_bytes - text.size()) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}: the limit is {}, this has more than {} bytes", printable_line(name),
                                    format_bytes(static_cast<std::int64_t>(max_bytes)), max_bytes));
    }
    text.append(piece.data(), num_bytes);
  }
  if (std::ferror(stream) != 0) return unreadable(name);
  return text;
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return unreadable(path);
  return read_stream(file.get(), path, max_bytes);
}

Result<std::string> read_input_file(const std::string& path, std::size_t max_bytes) {
  KVASIR_TRY(std::string text, read_file(path, max_bytes));
  if (text.empty()) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: is empty", printable_line(path)));
  }
  return text;
}

Result<std::string> read_standard_input() { return read_stream(stdin, "standard input", kMaxInputBytes); }

std::string without_final_newline(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace kvasir::cli
