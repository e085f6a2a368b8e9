// Reads little-endian values from unchecked bytes.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace kvasir::io {

// Never reads outside its bytes: each take_* either advances and returns the value, or returns nothing and
// leaves the position alone. Borrows the bytes.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

  template <class T>
    requires std::is_arithmetic_v<T>
  std::optional<T> take() {
    static_assert(std::endian::native == std::endian::little);
    if (remaining() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  std::optional<std::string_view> take_text(std::uint64_t num_bytes) {
    if (num_bytes > remaining()) return std::nullopt;
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, num_bytes);
    position_ += num_bytes;
    return text;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace kvasir::io
