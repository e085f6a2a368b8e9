// Small text files, read and written whole.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir {

// Whether it can be read as a file that is all there: opening a pipe, for one, waits for a writer. Error
// (kBadFile) naming the path, about `param`.
Status check_readable(const std::string& path, std::string_view param = {});

// Nothing when the file cannot be read or holds more than `max_bytes`. Works on /proc and /sys, whose files
// have no size.
std::optional<std::string> read_text_file(const std::string& path, std::size_t max_bytes = 1 << 20);

// All of it or nothing: into a draft beside the file, which takes its place once it is on the disk. Where `link` is a
// symbolic link, the file is the one that it leads to. Error (kMachine) naming the path; then the file is as it was.
Status replace_text_file(const std::string& link, std::string_view text, mode_t mode = 0644);
// Whether that could be done now, by making a draft and taking it away.
Status can_replace_text_file(const std::string& link);

}  // namespace kvasir
