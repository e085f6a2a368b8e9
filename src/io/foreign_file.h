// Files that people take for a model's, or got instead of one.
#pragma once

#include <string_view>

namespace kvasir::io {

// Names a file that is no GGUF file, by its first bytes, and says what to do about it; empty: nobody knows.
std::string_view foreign_file(std::string_view begin);

}  // namespace kvasir::io
