// The folders of the store, and the room that their disk has.
#pragma once

#include <cstdint>
#include <filesystem>

#include "kvasir/result.h"

namespace kvasir::store {

// Makes the folder and those above it, unless they are there. Error: kMachine.
Status make_store_folder(const std::filesystem::path& folder);

// Bytes that a user without privileges may still write on the disk of an existing folder. Error: kMachine.
Result<std::int64_t> free_bytes(const std::filesystem::path& folder);

}  // namespace kvasir::store
