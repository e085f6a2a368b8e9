// Small text files, read whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kvasir {

// Nothing when the file cannot be read or holds more than `max_bytes`. Works on /proc and /sys, whose files
// have no size.
std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes = 1 << 20);

}  // namespace kvasir
