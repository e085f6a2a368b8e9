#include "io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "base/printable.h"

namespace kvasir::io {
namespace {

using simdjson::dom::element;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxAxes = 8;  // five are those of video encoders' convolutions

struct ElementType {
  std::string_view name;
  std::int64_t bits;
};
constexpr ElementType kElementTypes[] = {
    {"F64", 64},     {"F32", 32},     {"F16", 16},    {"BF16", 16},   {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"F6_E3M2", 6},  {"F6_E2M3", 6},  {"F4", 4},      {"I64", 64},    {"I32", 32},    {"I16", 16},    {"I8", 8},
    {"U64", 64},     {"U32", 32},     {"U16", 16},    {"U8", 8},      {"BOOL", 8},    {"C64", 64},
};

std::unexpected<Error> bad_header(std::string problem) {
  return make_error(ErrorKind::kBadFile, std::move(problem));
}

template <class... Args>
std::unexpected<Error> bad_entry(std::string_view tensor, fmt::format_string<Args...> text, Args&&... args) {
  return bad_header(fmt::format("tensor {}: {}", printable(tensor), fmt::format(text, std::forward<Args>(args)...)));
}

// A tensor with its place in the data section.
struct Entry {
  SafetensorsTensor tensor;  // without data
  std::uint64_t begin = 0, end = 0;
};

Result<std::vector<std::int64_t>> read_sizes(std::string_view tensor, std::string_view field, const element& json) {
  simdjson::dom::array array;
  if (json.get_array().get(array) != simdjson::SUCCESS) return bad_entry(tensor, "{} must be an array", field);
  std::vector<std::int64_t> sizes;
  for (const element item : array) {
    std::int64_t size = 0;
    if (item.get_int64().get(size) != simdjson::SUCCESS || size < 0) {
      return bad_entry(tensor, "{} must hold whole numbers from 0 on, holds {}", field,
                       printable(simdjson::minify(item)));
    }
    sizes.push_back(size);
  }
  return sizes;
}

// Bytes that the type and the shape ask for; sub-byte types must fill whole bytes.
Result<std::uint64_t> expected_bytes(const SafetensorsTensor& tensor) {
  const auto* const type = std::ranges::find(kElementTypes, tensor.dtype, &ElementType::name);
  if (type == std::end(kElementTypes)) {
    return bad_entry(tensor.name, "has the unknown type {}", printable(tensor.dtype));
  }
  std::optional<std::int64_t> bits = type->bits;
  for (const std::int64_t size : tensor.shape) {
    if (bits) bits = checked_mul(*bits, size);
  }
  if (!bits) {
    return bad_entry(tensor.name, "has the shape {}, more than any memory holds", fmt::join(tensor.shape, "x"));
  }
  if (*bits % 8 != 0) {
    return bad_entry(tensor.name, "has {} bits in the type {}, which are no whole bytes", *bits, tensor.dtype);
  }
  return static_cast<std::uint64_t>(*bits) / 8;
}

class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<std::vector<SafetensorsTensor>> read() {
    KVASIR_TRY(const std::string_view header, find_header());
    simdjson::dom::parser parser;
    simdjson::dom::object root;
    if (parser.parse(header.data(), header.size()).get_object().get(root) != simdjson::SUCCESS) {
      return bad_header("header: is not a JSON object");
    }
    for (const auto [name, json] : root) {
      if (name == "__metadata__") continue;
      KVASIR_TRY(Entry entry, read_entry(name, json));
      entries_.push_back(std::move(entry));
    }
    KVASIR_CHECKED(check_names_unique());
    KVASIR_CHECKED(check_places());
    std::vector<SafetensorsTensor> tensors;
    tensors.reserve(entries_.size());
    for (Entry& entry : entries_) {
      entry.tensor.data = data_.subspan(entry.begin, entry.end - entry.begin);
      tensors.push_back(std::move(entry.tensor));
    }
    return tensors;
  }

 private:
  Result<std::string_view> find_header() {
    if (bytes_.size() < kLengthBytes) {
      return bad_header(fmt::format("header: the file ends inside it ({} bytes are needed, it has {})", kLengthBytes,
                                    bytes_.size()));
    }
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), sizeof length);
    const std::uint64_t rest = bytes_.size() - kLengthBytes;
    if (length > kMaxHeaderBytes) {
      return bad_header(fmt::format("header: at most {} bytes, says it has {}; is this a safetensors file?",
                                    kMaxHeaderBytes, length));
    }
    if (length > rest) {
      return bad_header(
          fmt::format("header: says it has {} bytes, {} follow; is the download incomplete?", length, rest));
    }
    data_ = bytes_.subspan(kLengthBytes + length);
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, length);
  }

  Result<Entry> read_entry(std::string_view name, const element& json) const {
    simdjson::dom::object object;
    if (json.get_object().get(object) != simdjson::SUCCESS) return bad_entry(name, "must be an object");
    Entry entry;
    entry.tensor.name = name;
    std::vector<std::int64_t> place;
    bool has_dtype = false, has_shape = false;
    for (const auto [field, value] : object) {
      std::string_view text;
      if (field == "dtype" && !has_dtype && value.get_string().get(text) == simdjson::SUCCESS) {
        entry.tensor.dtype = text;
        has_dtype = true;
      } else if (field == "shape" && !has_shape) {
        KVASIR_TRY(entry.tensor.shape, read_sizes(name, field, value));
        has_shape = true;
      } else if (field == "data_offsets" && place.empty()) {
        KVASIR_TRY(place, read_sizes(name, field, value));
      } else {
        return bad_entry(name, "has the unexpected field {}", printable(field));
      }
    }
    if (!has_dtype || !has_shape) return bad_entry(name, "has no {}", has_dtype ? "shape" : "dtype");
    if (place.size() != 2) return bad_entry(name, "must have two data_offsets, has {}", place.size());
    if (entry.tensor.shape.size() > kMaxAxes) {
      return bad_entry(name, "has {} axes, allowed are at most {}", entry.tensor.shape.size(), kMaxAxes);
    }
    entry.begin = static_cast<std::uint64_t>(place[0]);
    entry.end = static_cast<std::uint64_t>(place[1]);
    KVASIR_CHECKED(check_size(entry));
    return entry;
  }

  Status check_size(const Entry& entry) const {
    const std::string& name = entry.tensor.name;
    if (entry.begin > entry.end) return bad_entry(name, "begins at byte {} and ends at {}", entry.begin, entry.end);
    if (entry.end > data_.size()) {
      return bad_entry(name, "ends at byte {}, but {} bytes of data follow; is the download incomplete?", entry.end,
                       data_.size());
    }
    KVASIR_TRY(const std::uint64_t expected, expected_bytes(entry.tensor));
    if (entry.end - entry.begin == expected) return {};
    return bad_entry(name, "needs {} bytes ({} {}), has {}", expected, entry.tensor.dtype,
                     fmt::join(entry.tensor.shape, "x"), entry.end - entry.begin);
  }

  Status check_names_unique() const {
    std::vector<std::string_view> names;
    names.reserve(entries_.size());
    for (const Entry& entry : entries_) names.push_back(entry.tensor.name);
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice == names.end()) return {};
    return bad_entry(*twice, "appears twice in the header");
  }

  // Sorts by place; the tensors must fill the data section exactly.
  Status check_places() {
    std::ranges::sort(entries_, [](const Entry& a, const Entry& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::uint64_t end = 0;
    for (const Entry& entry : entries_) {
      if (entry.begin < end) {
        return bad_entry(entry.tensor.name, "begins at byte {}, inside the tensor before it, which ends at {}",
                         entry.begin, end);
      }
      if (entry.begin > end) {
        return bad_entry(entry.tensor.name, "begins at byte {}, but the tensor before it ends at {}", entry.begin, end);
      }
      end = entry.end;
    }
    if (end == data_.size()) return {};
    return bad_header(fmt::format("header: its tensors end at byte {}, but {} bytes of data follow", end, data_.size()));
  }

  std::span<const std::byte> bytes_, data_;
  std::vector<Entry> entries_;
};

}  // namespace

std::int64_t SafetensorsTensor::num_elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  auto tensors = HeaderReader(bytes).read();
  if (!tensors) {
    return make_error(tensors.error().kind, fmt::format("{}: {}", printable_line(name), tensors.error().message));
  }
  return tensors;
}

}  // namespace kvasir::io
