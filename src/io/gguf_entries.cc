#include "io/gguf_entries.h"

#include <optional>
#include <utility>

#include "io/byte_cursor.h"
#include "io/gguf_append.h"

namespace kvasir::io {
namespace {

constexpr std::uint32_t kBytesOf[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};  // by type; 0: not the same for all
constexpr std::uint32_t kNumTypes = 13;

GgufEntry entry_of(std::string key, GgufValueType type) {
  return {.key = std::move(key), .type = static_cast<std::uint32_t>(type), .value = {}};
}

GgufEntry array_of(std::string key, GgufValueType type, std::size_t count) {
  GgufEntry entry = entry_of(std::move(key), GgufValueType::kArray);
  append(entry.value, static_cast<std::uint32_t>(type));
  append<std::uint64_t>(entry.value, count);
  return entry;
}

bool skip(ByteCursor& cursor, std::uint64_t num_bytes) { return cursor.take_text(num_bytes).has_value(); }

bool skip_text(ByteCursor& cursor) {
  const auto length = cursor.take<std::uint64_t>();
  return length && skip(cursor, *length);
}

bool skip_value(ByteCursor& cursor, std::uint32_t type) {
  if (type >= kNumTypes) return false;
  if (kBytesOf[type] > 0) return skip(cursor, kBytesOf[type]);
  if (type == static_cast<std::uint32_t>(GgufValueType::kString)) return skip_text(cursor);
  const auto of = cursor.take<std::uint32_t>();
  const auto count = cursor.take<std::uint64_t>();
  if (!of || !count || *of >= kNumTypes) return false;
  if (kBytesOf[*of] > 0) return *count <= cursor.remaining() / kBytesOf[*of] && skip(cursor, *count * kBytesOf[*of]);
  for (std::uint64_t i = 0; i < *count; ++i) {
    if (!skip_text(cursor)) return false;
  }
  return true;
}

}  // namespace

GgufEntry uint32_entry(std::string key, std::uint32_t value) {
  GgufEntry entry = entry_of(std::move(key), GgufValueType::kUint32);
  append(entry.value, value);
  return entry;
}

GgufEntry float_entry(std::string key, float value) {
  GgufEntry entry = entry_of(std::move(key), GgufValueType::kFloat32);
  append(entry.value, value);
  return entry;
}

GgufEntry bool_entry(std::string key, bool value) {
  GgufEntry entry = entry_of(std::move(key), GgufValueType::kBool);
  append(entry.value, static_cast<std::uint8_t>(value ? 1 : 0));
  return entry;
}

GgufEntry string_entry(std::string key, std::string_view value) {
  GgufEntry entry = entry_of(std::move(key), GgufValueType::kString);
  append_text(entry.value, value);
  return entry;
}

GgufEntry strings_entry(std::string key, std::span<const std::string> values) {
  GgufEntry entry = array_of(std::move(key), GgufValueType::kString, values.size());
  for (const std::string& value : values) append_text(entry.value, value);
  return entry;
}

GgufEntry int32s_entry(std::string key, std::span<const std::int32_t> values) {
  GgufEntry entry = array_of(std::move(key), GgufValueType::kInt32, values.size());
  for (const std::int32_t value : values) append(entry.value, value);
  return entry;
}

GgufEntry floats_entry(std::string key, std::span<const float> values) {
  GgufEntry entry = array_of(std::move(key), GgufValueType::kFloat32, values.size());
  for (const float value : values) append(entry.value, value);
  return entry;
}

Result<std::vector<GgufEntry>> read_gguf_entries(std::span<const std::byte> file) {
  constexpr std::uint64_t kHeaderBytes = 4 + 4 + 8;
  ByteCursor cursor(file);
  const auto bad = [] { return make_error(ErrorKind::kBadFile, "metadata: the file ends inside them"); };
  if (!skip(cursor, kHeaderBytes)) return bad();
  const auto count = cursor.take<std::uint64_t>();
  if (!count) return bad();
  std::vector<GgufEntry> entries;
  for (std::uint64_t i = 0; i < *count; ++i) {
    const auto length = cursor.take<std::uint64_t>();
    const auto key = length ? cursor.take_text(*length) : std::nullopt;
    const auto type = cursor.take<std::uint32_t>();
    const std::size_t begin = cursor.position();
    if (!key || !type || !skip_value(cursor, *type)) return bad();
    entries.push_back({.key = std::string(*key),
                       .type = *type,
                       .value = {reinterpret_cast<const char*>(file.data()) + begin, cursor.position() - begin}});
  }
  return entries;
}

}  // namespace kvasir::io
