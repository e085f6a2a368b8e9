#include "eval/npy_reader.h"

#include <algorithm>
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

namespace {

// The sizes behind 'shape': of "(3, 4)" 3 and 4; empty where there is no such list.
std::vector<std::int64_t> shape_of(std::string_view header) {
  std::vector<std::int64_t> sizes;
  const std::size_t key = header.find("'shape'");
  const std::size_t open = key == header.npos ? key : header.find('(', key);
  if (open == header.npos) return sizes;
  std::int64_t size = -1;
  for (std::size_t i = open + 1; i < header.size(); ++i) {
    if (header[i] >= '0' && header[i] <= '9') {
      size = std::min<std::int64_t>((size < 0 ? 0 : size) * 10 + header[i] - '0', std::int64_t{1} << 40);
    } else if (size >= 0) {
      sizes.push_back(size);
      size = -1;
    }
    if (header[i] == ')') break;
  }
  return sizes;
}

}  // namespace

Result<NpyIntegers> parse_npy_integers(std::string_view bytes) {
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
  NpyIntegers integers;
  if (has_type("'<i4'") && data.size() % 4 == 0) {
    integers.values = widened<std::int32_t>(data);
  } else if (has_type("'<u4'") && data.size() % 4 == 0) {
    integers.values = widened<std::uint32_t>(data);
  } else if ((has_type("'<i8'") || has_type("'<u8'")) && data.size() % 8 == 0) {
    integers.values = widened<std::int64_t>(data);
  } else {
    return bad("has no integers of 4 or 8 bytes");
  }
  const std::vector<std::int64_t> shape = shape_of(header);
  if (shape.empty() || shape.size() > 2) return bad("has neither one dimension nor two");
  if (shape.size() == 2) integers.row_length = shape[1];
  const std::int64_t count = shape.size() == 2 ? shape[0] * shape[1] : shape[0];
  if (count != std::ssize(integers.values)) return bad("has not as many integers as its header says");
  return integers;
}

}  // namespace kvasir::eval
