#include "server/observe/tracing/proto_reader.h"

namespace kvasir::server::observe {

std::optional<std::uint64_t> ProtoReader::take_varint() {
  constexpr std::size_t kMaxBytes = 10;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest_.size() && i < kMaxBytes; ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    rest_.remove_prefix(i + 1);
    return value;
  }
  return {};
}

std::optional<std::uint64_t> ProtoReader::take_little_endian(std::size_t num_bytes) {
  if (rest_.size() < num_bytes) return {};
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < num_bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(num_bytes);
  return value;
}

std::optional<ProtoReader::Field> ProtoReader::next() {
  const auto tag = take_varint();
  if (!tag) return {};
  Field field{.number = static_cast<int>(*tag >> 3 & 0x1FFF'FFFF), .bytes = {}};
  std::optional<std::uint64_t> value;
  switch (*tag & 7) {
    case 0:
      value = take_varint();
      break;
    case 1:
      value = take_little_endian(8);
      break;
    case 2:
      value = take_varint();
      if (!value || *value > rest_.size()) return {};
      field.bytes = rest_.substr(0, *value);
      rest_.remove_prefix(*value);
      break;
    case 5:
      value = take_little_endian(4);
      break;
    default:
      return {};
  }
  if (!value) return {};
  field.value = *value;
  return field;
}

}  // namespace kvasir::server::observe
