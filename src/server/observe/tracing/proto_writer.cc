#include "server/observe/tracing/proto_writer.h"

#include <bit>

namespace kvasir::server::observe {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

void append_little_endian(std::string& out, std::uint64_t value, int num_bytes) {
  for (int i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

}  // namespace

void ProtoWriter::append_varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
  out_ += static_cast<char>(value);
}

void ProtoWriter::tag(int field, int wire_type) {
  append_varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

ProtoWriter& ProtoWriter::varint(int field, std::uint64_t value) {
  tag(field, kVarint);
  append_varint(value);
  return *this;
}

ProtoWriter& ProtoWriter::fixed32(int field, std::uint32_t value) {
  tag(field, kFixed32);
  append_little_endian(out_, value, 4);
  return *this;
}

ProtoWriter& ProtoWriter::fixed64(int field, std::uint64_t value) {
  tag(field, kFixed64);
  append_little_endian(out_, value, 8);
  return *this;
}

ProtoWriter& ProtoWriter::real(int field, double value) {
  return fixed64(field, std::bit_cast<std::uint64_t>(value));
}

ProtoWriter& ProtoWriter::bytes(int field, std::string_view value) {
  tag(field, kLengthDelimited);
  append_varint(value.size());
  out_ += value;
  return *this;
}

}  // namespace kvasir::server::observe
