#include "io/gguf_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/checked_math.h"
#include "base/printable.h"
#include "io/byte_cursor.h"
#include "io/foreign_file.h"
#include "io/gguf_metadata.h"

namespace kvasir::io {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
// The specification asks for multiples of 8; that also keeps every F32 tensor aligned to its elements.
constexpr std::int64_t kMinAlignment = 8;
constexpr std::int64_t kMaxAlignment = 1 << 20;
constexpr std::uint64_t kMinTensorInfoBytes =
    8 + 1 + 4 + 8 + 4 + 8;  // name, rank, one dimension, type, offset
constexpr std::uint64_t kMaxTensorNameBytes = 255;
constexpr std::uint32_t kMaxRank = 4;

// Tensor types that files may have and no format of quant/formats.def reads.
struct UnsupportedType {
  std::uint32_t number;
  std::string_view name;
  std::int64_t block_elements = 0;  // 0: types that are gone, whose size nobody needs
  std::int64_t block_bytes = 0;
};
constexpr UnsupportedType kUnsupportedTypes[] = {
    {4, "Q4_2"},
    {5, "Q4_3"},
    {9, "Q8_1", 32, 36},
    {15, "Q8_K", 256, 292},
    {19, "IQ1_S", 256, 50},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},
    {31, "Q4_0_4_4"},
    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"},
    {36, "IQ4_NL_4_4"},
    {37, "IQ4_NL_4_8"},
    {38, "IQ4_NL_8_8"},
};

std::string supported_types() {
  std::string names;
  for (const DTypeInfo& info : kDTypeInfos) names.append(names.empty() ? "" : " ").append(info.name);
  return names;
}

struct TensorInfo {
  TensorView view;           // without data
  std::uint64_t offset = 0;  // from the start of the data section
  std::uint32_t type = 0;    // as the file numbers it
  bool is_supported = true;  // else view.dtype means nothing
};

const UnsupportedType* find_unsupported(std::uint32_t type) {
  const auto* const found = std::ranges::find(kUnsupportedTypes, type, &UnsupportedType::number);
  return found == std::end(kUnsupportedTypes) ? nullptr : found;
}

// Sizes beyond what a number holds count as 0: nothing is read there.
UnsupportedTensor unsupported_tensor(const TensorInfo& info) {
  const UnsupportedType* type = find_unsupported(info.type);
  UnsupportedTensor tensor;
  tensor.name = info.view.name;
  tensor.type_number = info.type;
  tensor.type = type == nullptr ? fmt::format("type {}", info.type) : std::string(type->name);
  tensor.shape.assign(info.view.shape.begin(), info.view.shape.begin() + info.view.rank);
  std::optional<std::int64_t> num_elements = 1;
  for (const std::int64_t size : tensor.shape) {
    if (num_elements) num_elements = checked_mul(*num_elements, size);
  }
  tensor.num_elements = num_elements.value_or(0);
  if (type == nullptr || type->block_elements == 0) return tensor;
  const auto bytes = checked_mul(tensor.num_elements / type->block_elements, type->block_bytes);
  tensor.num_bytes = bytes.value_or(0);
  return tensor;
}

std::unexpected<Error> bad_bytes(std::string problem) {
  return make_error(ErrorKind::kBadFile, std::move(problem));
}

// Requires: the shape's product of 64-bit dimensions was checked.
std::string shape_text(const TensorView& view) {
  return fmt::format("{}", fmt::join(view.shape.begin(), view.shape.begin() + view.rank, "x"));
}

std::string_view begin_of(std::span<const std::byte> bytes, std::size_t max_bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), max_bytes)};
}

class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, TensorTypes types)
      : bytes_(bytes), cursor_(bytes), types_(types) {}

  Result<GgufContents> read() {
    GgufContents contents;
    KVASIR_TRY(std::vector<TensorInfo> infos, read_header(contents));
    KVASIR_CHECKED(check_names_unique(infos));
    const auto unsupported = std::ranges::stable_partition(infos, &TensorInfo::is_supported);
    for (const TensorInfo& info : unsupported) contents.unsupported.push_back(unsupported_tensor(info));
    infos.erase(unsupported.begin(), unsupported.end());
    KVASIR_TRY(const std::uint64_t alignment, read_alignment(contents.metadata));
    KVASIR_CHECKED(place_tensors(infos, alignment));
    contents.tensors.reserve(infos.size());
    for (TensorInfo& info : infos) contents.tensors.push_back(std::move(info.view));
    return contents;
  }

  // All but the places of the tensors.
  Result<std::vector<TensorInfo>> read_header(GgufContents& contents) {
    KVASIR_TRY(contents.version, read_version());
    const auto num_tensors = cursor_.take<std::uint64_t>();
    const auto num_entries = cursor_.take<std::uint64_t>();
    if (!num_tensors || !num_entries) {
      return bad_bytes(
          fmt::format("header: the file ends inside it (24 bytes are needed, it has {})", bytes_.size()));
    }
    KVASIR_TRY(contents.metadata, read_gguf_metadata(cursor_, *num_entries));
    KVASIR_CHECKED(read_alignment(contents.metadata));
    return read_tensor_infos(*num_tensors);
  }

 private:
  Result<std::uint32_t> read_version() {
    if (bytes_.empty()) return bad_bytes("header: the file is empty");
    const auto magic = cursor_.take_text(4);
    if (!magic || *magic != "GGUF") {
      const std::string_view start = begin_of(bytes_, 4);
      if (start == "FUGG")
        return bad_bytes("header: a big-endian GGUF file, only little-endian ones are supported");
      if (const std::string_view foreign = foreign_file(begin_of(bytes_, 256)); !foreign.empty()) {
        return bad_bytes(fmt::format("header: not a GGUF file but {}", foreign));
      }
      return bad_bytes(fmt::format("header: not a GGUF file: it starts with \"{}\" instead of \"GGUF\"",
                                   printable(start)));
    }
    const auto version = cursor_.take<std::uint32_t>();
    if (!version) {
      return bad_bytes(
          fmt::format("header: the file ends inside it (24 bytes are needed, it has {})", bytes_.size()));
    }
    if (*version != 0 && (*version & 0xffffu) == 0) {
      return bad_bytes("header: a big-endian GGUF file, only little-endian ones are supported");
    }
    if (*version != 2 && *version != 3) {
      return bad_bytes(fmt::format("header: GGUF version {} is not supported (2 and 3 are)", *version));
    }
    return *version;
  }

  static Result<std::uint64_t> read_alignment(const Metadata& metadata) {
    KVASIR_TRY(const auto alignment, metadata.find_int("general.alignment", kMinAlignment, kMaxAlignment));
    if (!alignment) return kDefaultAlignment;
    if ((*alignment & (*alignment - 1)) != 0) {
      return bad_bytes(
          fmt::format("metadata: general.alignment must be a power of two, but it is {}", *alignment));
    }
    return static_cast<std::uint64_t>(*alignment);
  }

  Result<std::vector<TensorInfo>> read_tensor_infos(std::uint64_t num_tensors) {
    if (num_tensors > cursor_.remaining() / kMinTensorInfoBytes) {
      return bad_bytes(fmt::format("tensor list: {} tensors announced, but the {} bytes left hold at most {}",
                                   num_tensors, cursor_.remaining(),
                                   cursor_.remaining() / kMinTensorInfoBytes));
    }
    std::vector<TensorInfo> infos;
    infos.reserve(num_tensors);
    for (std::uint64_t i = 0; i < num_tensors; ++i) {
      KVASIR_TRY(TensorInfo info, read_tensor_info(i + 1, num_tensors));
      infos.push_back(std::move(info));
    }
    return infos;
  }

  Result<TensorInfo> read_tensor_info(std::uint64_t number, std::uint64_t num_tensors) {
    const auto ends_inside = [&] {
      return bad_bytes(
          fmt::format("tensor list: the file ends inside tensor {} of {} (at byte {}, {} bytes left)", number,
                      num_tensors, cursor_.position(), cursor_.remaining()));
    };
    const auto name_bytes = cursor_.take<std::uint64_t>();
    if (!name_bytes) return ends_inside();
    if (*name_bytes == 0 || *name_bytes > kMaxTensorNameBytes) {
      return bad_bytes(fmt::format("tensor list: the name of tensor {} has {} bytes, allowed are 1 to {}",
                                   number, *name_bytes, kMaxTensorNameBytes));
    }
    const auto name = cursor_.take_text(*name_bytes);
    const auto rank = cursor_.take<std::uint32_t>();
    if (!name || !rank) return ends_inside();
    TensorInfo info;
    info.view.name = std::string(*name);
    if (*rank == 0 || *rank > kMaxRank)
      return bad_tensor(info.view, "has {} dimensions, allowed are 1 to {}", *rank, kMaxRank);
    info.view.rank = static_cast<std::int32_t>(*rank);
    for (std::uint32_t axis = 0; axis < *rank; ++axis) {
      const auto size = cursor_.take<std::uint64_t>();
      if (!size) return ends_inside();
      if (*size == 0 || *size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return bad_tensor(info.view, "has dimension {} of size {}, allowed are 1 to {}", axis, *size,
                          std::numeric_limits<std::int64_t>::max());
      }
      info.view.shape[axis] = static_cast<std::int64_t>(*size);
    }
    const auto type = cursor_.take<std::uint32_t>();
    const auto offset = cursor_.take<std::uint64_t>();
    if (!type || !offset) return ends_inside();
    info.offset = *offset;
    info.type = *type;
    const auto* const known = std::ranges::find(kDTypeInfos, *type, &DTypeInfo::gguf_type);
    info.is_supported = known != std::end(kDTypeInfos);
    if (info.is_supported) {
      info.view.dtype = known->dtype;
    } else if (types_ == TensorTypes::kSupported) {
      return refuse_type(info);
    }
    return info;
  }

  template <class... Args>
  static std::unexpected<Error> bad_tensor(const TensorView& view, fmt::format_string<Args...> text,
                                           Args&&... args) {
    return bad_bytes(
        fmt::format("tensor {}: {}", printable(view.name), fmt::format(text, std::forward<Args>(args)...)));
  }

  static std::unexpected<Error> refuse_type(const TensorInfo& info) {
    const UnsupportedType* known = find_unsupported(info.type);
    if (known == nullptr) return bad_tensor(info.view, "has the unknown type {}", info.type);
    return bad_tensor(info.view, "has type {} ({}), supported are {}", known->name, info.type,
                      supported_types());
  }

  // Bytes of the tensor's data, every product checked.
  static Result<std::uint64_t> data_bytes(const TensorView& view) {
    const DTypeInfo& format = info_of(view.dtype);
    if (view.row_length() % format.block_elements != 0) {
      return bad_tensor(view, "has rows of {} elements, which {} needs in multiples of {}", view.row_length(),
                        format.name, format.block_elements);
    }
    std::optional<std::int64_t> num_elements = view.row_length();
    for (std::size_t axis = 1; axis < view.shape.size() && num_elements; ++axis) {
      num_elements = checked_mul(*num_elements, view.shape[axis]);
    }
    // Times the block's bytes, which is at least the bytes that an element takes.
    if (!num_elements || !checked_mul<std::int64_t>(*num_elements, format.block_bytes)) {
      return bad_tensor(view, "has the shape {}, more than any memory holds", shape_text(view));
    }
    return static_cast<std::uint64_t>(view.num_bytes());
  }

  // Points every view at its bytes, after checking that they lie in the file, aligned and apart from each
  // other.
  Status place_tensors(std::vector<TensorInfo>& infos, std::uint64_t alignment) {
    const std::uint64_t data_begin = ceil_div<std::uint64_t>(cursor_.position(), alignment) * alignment;
    const std::uint64_t data_bytes_left = bytes_.size() - std::min<std::uint64_t>(data_begin, bytes_.size());
    for (TensorInfo& info : infos) {
      KVASIR_TRY(const std::uint64_t num_bytes, data_bytes(info.view));
      if (info.offset % alignment != 0) {
        return bad_tensor(info.view, "starts at offset {}, which is not a multiple of the alignment {}",
                          info.offset, alignment);
      }
      if (info.offset > data_bytes_left || num_bytes > data_bytes_left - info.offset) {
        return bad_tensor(info.view, "needs {} bytes ({} {}) at offset {}, but the data section has {}",
                          num_bytes, name_of(info.view.dtype), shape_text(info.view), info.offset,
                          data_bytes_left);
      }
      info.view.data = bytes_.data() + data_begin + info.offset;
    }
    return check_apart(infos);
  }

  static Status check_apart(const std::vector<TensorInfo>& infos) {
    std::vector<const TensorInfo*> order = pointers_to(infos);
    std::ranges::sort(order, {}, &TensorInfo::offset);
    for (std::size_t i = 1; i < order.size(); ++i) {
      const TensorInfo& before = *order[i - 1];
      const std::uint64_t end = before.offset + static_cast<std::uint64_t>(before.view.num_bytes());
      if (order[i]->offset < end) {
        return bad_tensor(order[i]->view, "starts at offset {}, inside tensor {}, which ends at {}",
                          order[i]->offset, printable(before.view.name), end);
      }
    }
    return {};
  }

  static Status check_names_unique(const std::vector<TensorInfo>& infos) {
    std::vector<const TensorInfo*> order = pointers_to(infos);
    const auto name = [](const TensorInfo* info) -> const std::string& { return info->view.name; };
    std::ranges::sort(order, {}, name);
    const auto twice = std::ranges::adjacent_find(order, {}, name);
    if (twice == order.end()) return {};
    return bad_bytes(fmt::format("tensor list: the name {} appears twice", printable((*twice)->view.name)));
  }

  static std::vector<const TensorInfo*> pointers_to(const std::vector<TensorInfo>& infos) {
    std::vector<const TensorInfo*> pointers;
    pointers.reserve(infos.size());
    for (const TensorInfo& info : infos) pointers.push_back(&info);
    return pointers;
  }

  std::span<const std::byte> bytes_;
  ByteCursor cursor_;
  TensorTypes types_;
};

}  // namespace

bool has_whole_header(std::span<const std::byte> bytes) {
  GgufContents contents;
  return GgufReader(bytes, TensorTypes::kAny).read_header(contents).has_value();
}

Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view name, TensorTypes types) {
  auto contents = GgufReader(bytes, types).read();
  if (!contents) {
    return make_error(contents.error().kind,
                      fmt::format("{}: {}", printable_line(name), contents.error().message));
  }
  return contents;
}

}  // namespace kvasir::io
