// The key-value section of a GGUF file.
#pragma once

#include <cstdint>

#include "io/byte_cursor.h"
#include "io/metadata.h"
#include "kvasir/result.h"

namespace kvasir::io {

// Memory that one file's metadata may take once it is read: the largest vocabularies need some tens of MiB.
inline constexpr std::uint64_t kMaxMetadataBytes = std::uint64_t{1} << 30;

// Reads `num_entries` key-value pairs and leaves `cursor` behind them. Errors: kBadFile, starting with
// "metadata:", for a count, length, type or value that the bytes left or the limits above do not allow, and
// for duplicate keys.
Result<Metadata> read_gguf_metadata(ByteCursor& cursor, std::uint64_t num_entries);

}  // namespace kvasir::io
