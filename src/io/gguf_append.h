// Values as they lie in a GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::io {

// Little-endian, as the machine has it (byte_cursor.h).
template <class T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline void append_text(std::string& out, std::string_view text) {
  append<std::uint64_t>(out, text.size());
  out += text;
}

}  // namespace kvasir::io
