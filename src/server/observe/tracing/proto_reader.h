// Reads protobuf's wire format, field by field, from bytes that nobody vouches for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvasir::server::observe {

// Thread safety: none.
class ProtoReader {
 public:
  struct Field {
    int number = 0;
    std::uint64_t value = 0;  // of a number
    std::string_view bytes;   // of a string or message; borrowed
  };

  explicit ProtoReader(std::string_view message) : rest_(message) {}

  // Nothing at the end, and where the bytes are no message.
  std::optional<Field> next();

 private:
  std::optional<std::uint64_t> take_varint();
  std::optional<std::uint64_t> take_little_endian(std::size_t num_bytes);

  std::string_view rest_;
};

}  // namespace kvasir::server::observe
