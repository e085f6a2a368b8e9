#include "eval/npy_reader.h"

#include <cstring>

namespace kvasir::eval {
namespace {

template <class Stored>
std::vector<std::int64_t> widened(std::string_view data) {
  std::vector<std::int64_t> values(data.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored value;
    std::memcpy(&value, data.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<std::int64_t>(value);
  }
  return values;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_npy_integers(std::string_view bytes) {
  constexpr std::string_view kMagic("\x93NUMPY", 6);
  const auto bad = [](const char* what) { return make_error(ErrorKind::kBadFile, std::string("ids: ") + what, "ids"); };
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) return bad("is no .npy file");
  const bool is_long = bytes[6] >= 2;
  const std::size_t begin = is_long ? 12 : 10;
  std::uint32_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 8, is_long ? 4 : 2);
  if (header_bytes > bytes.size() - begin) return bad("ends within its header");
  const std::string_view header = bytes.substr(begin, header_bytes), data = bytes.substr(begin + header_bytes);
  if (header.find("'fortran_order': True") != header.npos) return bad("is in Fortran's order");
  const auto has_type = [&](std::string_view name) { return header.find(name) != header.npos; };
  if ((has_type("'<i4'") || has_type("'<u4'")) && data.size() % 4 == 0) {
    return has_type("'<i4'") ? widened<std::int32_t>(data) : widened<std::uint32_t>(data);
  }
  if ((has_type("'<i8'") || has_type("'<u8'")) && data.size() % 8 == 0) return widened<std::int64_t>(data);
  return bad("has no integers of 4 or 8 bytes");
}

}  // namespace kvasir::eval
