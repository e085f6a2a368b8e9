// Reads gzip files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir {

// Whether the bytes begin as a gzip file does.
inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1F\x8B"); }

// The contents (RFC 1951 and 1952), of all members one after the other.
// kBadFile: broken, cut short, a wrong checksum, or more than max_bytes.
Result<std::string> gunzip(std::string_view bytes, std::size_t max_bytes);

}  // namespace kvasir
