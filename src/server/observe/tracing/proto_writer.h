// Writes protobuf's wire format straight into a string: no generated code in between.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kvasir::server::observe {

// Appends the fields of one message in the order of the calls. Empty strings are written: whoever calls
// leaves out what is absent. Source: Protocol Buffers, Encoding.
//
// Thread safety: none.
class ProtoWriter {
 public:
  // `out` outlives the writer.
  explicit ProtoWriter(std::string& out) : out_(out) {}

  ProtoWriter& varint(int field, std::uint64_t value);
  ProtoWriter& fixed32(int field, std::uint32_t value);
  ProtoWriter& fixed64(int field, std::uint64_t value);
  ProtoWriter& real(int field, double value);
  // Bytes; a string, which must be UTF-8; or a message that is written already.
  ProtoWriter& bytes(int field, std::string_view value);
  // A message that `write(ProtoWriter&)` fills.
  template <class Write>
  ProtoWriter& message(int field, Write&& write) {
    std::string inner;
    ProtoWriter writer(inner);
    write(writer);
    return bytes(field, inner);
  }

 private:
  void tag(int field, int wire_type);
  void append_varint(std::uint64_t value);

  std::string& out_;
};

}  // namespace kvasir::server::observe
