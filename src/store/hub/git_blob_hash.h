// The hash by which git names the content of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "kvasir/result.h"

namespace kvasir::store {

// SHA-1 of "blob SIZE\0" and the bytes of a whole file; 40 lower-case hex digits. `on_bytes(done)` as for
// hash_file.
Result<std::string> git_blob_hash(const std::filesystem::path& path,
                                  const std::function<bool(std::int64_t)>& on_bytes);

}  // namespace kvasir::store
