#include "io/model_fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/printable.h"

namespace kvasir::io {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kOffsetBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;

// The file itself, or the safetensors files of a folder by name.
std::vector<fs::path> weight_files(const std::string& model_path) {
  std::error_code ignored;
  if (!fs::is_directory(model_path, ignored)) return {model_path};
  std::vector<fs::path> files;
  for (fs::directory_iterator it(model_path, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().extension() == ".safetensors") files.push_back(it->path());
  }
  std::ranges::sort(files);
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

Result<std::string> model_fingerprint(const std::string& model_path) {
  std::uint64_t hash = kOffsetBasis;
  std::int64_t total_bytes = 0;
  for (const fs::path& path : weight_files(model_path)) {
    const auto size = hash_pieces(path, hash);
    if (!size) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be read", printable_line(path.native())));
    }
    total_bytes += *size;
  }
  return fmt::format("{}-{:016x}", total_bytes, hash);
}

}  // namespace kvasir::io
