#include "io/model_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "base/printable.h"

namespace kvasir::io {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kOffsetBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;

// Of NAME-00001-of-00003.gguf all three; of another file itself.
std::vector<std::string> split_files(const std::string& path) {
  constexpr std::string_view kFirst = "-00001-of-00000.gguf";
  constexpr std::size_t kCountAt = 10, kDigits = 5;
  if (path.size() <= kFirst.size()) return {path};
  const std::string_view tail = std::string_view(path).substr(path.size() - kFirst.size());
  const std::string_view digits = tail.substr(kCountAt, kDigits);
  const bool is_first = tail.starts_with(kFirst.substr(0, kCountAt)) && tail.ends_with(".gguf") &&
                        digits.find_first_not_of("0123456789") == digits.npos;
  if (!is_first) return {path};
  std::int32_t count = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const std::string stem = path.substr(0, path.size() - kFirst.size());
  std::vector<std::string> files = {path};
  for (std::int32_t i = 2; i <= count; ++i) {
    const std::string file = fmt::format("{}-{:05}-of-{}.gguf", stem, i, digits);
    std::error_code ignored;
    if (fs::exists(file, ignored)) files.push_back(file);  // a merged file may keep its old name
  }
  return files;
}

// Hashes pieces of one file; its size, or nothing when it cannot be read.
std::optional<std::int64_t> hash_pieces(const fs::path& path, std::uint64_t& hash) {
  constexpr std::int64_t kNumPieces = 64, kPieceBytes = 4096;
  std::error_code failure;
  const auto size = static_cast<std::int64_t>(fs::file_size(path, failure));
  std::ifstream file(path, std::ios::binary);
  if (failure || !file) return std::nullopt;
  std::array<char, kPieceBytes> piece;
  for (std::int64_t i = 0; i < kNumPieces; ++i) {
    file.clear();
    file.seekg(size / kNumPieces * i);
    file.read(piece.data(), kPieceBytes);
    for (std::streamsize byte = 0; byte < file.gcount(); ++byte) {
      hash = (hash ^ static_cast<unsigned char>(piece[static_cast<std::size_t>(byte)])) * kPrime;
    }
  }
  return size;
}

}  // namespace

std::vector<std::string> weight_files(const std::string& model_path) {
  std::error_code ignored;
  if (!fs::is_directory(model_path, ignored)) return split_files(model_path);
  std::vector<std::string> files;
  for (fs::directory_iterator it(model_path, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().extension() == ".safetensors") files.push_back(it->path().native());
  }
  std::ranges::sort(files);
  return files;
}

std::int64_t weight_file_bytes(const std::string& model_path) {
  std::int64_t bytes = 0;
  for (const std::string& path : weight_files(model_path)) {
    std::error_code failure;
    const std::uintmax_t size = fs::file_size(path, failure);
    if (!failure) bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

Result<std::string> model_fingerprint(const std::string& model_path) {
  std::uint64_t hash = kOffsetBasis;
  std::int64_t total_bytes = 0;
  for (const std::string& path : weight_files(model_path)) {
    const auto size = hash_pieces(path, hash);
    if (!size) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be read", printable_line(path)));
    }
    total_bytes += *size;
  }
  return fmt::format("{}-{:016x}", total_bytes, hash);
}

}  // namespace kvasir::io
