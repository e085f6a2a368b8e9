// Reads members of a Python wheel, which is a zip archive.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "kvasir/result.h"

namespace kvasir::store {

// Unpacks the one member of `wheel` whose name matches `glob` ("*" crosses folders), handing it to `sink` in
// pieces; an Error of the sink ends it. Nothing is written to disk. Errors: kBadFile when the archive is
// damaged or none or several members match.
Status read_wheel_member(const std::filesystem::path& wheel, const std::string& glob,
                         const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace kvasir::store
