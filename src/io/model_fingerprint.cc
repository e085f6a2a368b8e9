#include "io/model_fingerprint.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/printable.h"

namespace kvasir::io {

Result<std::string> model_fingerprint(const std::string& model_path) {
  constexpr std::uint64_t kOffsetBasis = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  constexpr std::int64_t kNumPieces = 64, kPieceBytes = 4096;
  std::error_code failure;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(model_path, failure));
  std::ifstream file(model_path, std::ios::binary);
  if (failure || !file) {
    return make_error(ErrorKind::kBadFile, fmt::format("{}: cannot be read", printable_line(model_path)));
  }
  std::uint64_t hash = kOffsetBasis;
  std::array<char, kPieceBytes> piece;
  for (std::int64_t i = 0; i < kNumPieces; ++i) {
    file.clear();
    file.seekg(size / kNumPieces * i);
    file.read(piece.data(), kPieceBytes);
    for (std::streamsize byte = 0; byte < file.gcount(); ++byte) {
      hash = (hash ^ static_cast<unsigned char>(piece[static_cast<std::size_t>(byte)])) * kPrime;
    }
  }
  return fmt::format("{}-{:016x}", size, hash);
}

}  // namespace kvasir::io
