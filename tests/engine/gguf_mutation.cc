#include "gguf_mutation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "io/gguf_reader.h"

namespace kvasir::testing {
namespace {

// Types of metadata values, as GGUF numbers them.
constexpr std::uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kArray = 9;

constexpr float kGrowth = 1.5f;

template <class T>
T read_as(const std::byte* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

template <class T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

float disturbed(float value, std::int64_t index) {
  return index % 2 == 0 ? value * kGrowth : value / kGrowth;
}

// F32 and BF16 alone: goldens have nothing else.
std::vector<std::byte> disturbed_tensor(const TensorView& tensor) {
  std::vector<std::byte> bytes(tensor.data, tensor.data + tensor.num_bytes());
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.dtype == DType::kF32) {
      std::byte* const at = bytes.data() + 4 * i;
      const float value = disturbed(read_as<float>(at), i);
      std::memcpy(at, &value, 4);
    } else {
      std::byte* const at = bytes.data() + 2 * i;
      const std::uint32_t widened = std::uint32_t{read_as<std::uint16_t>(at)} << 16;
      const auto value = disturbed(read_as<float>(reinterpret_cast<const std::byte*>(&widened)), i);
      std::memcpy(at, reinterpret_cast<const std::byte*>(&value) + 2, 2);
    }
  }
  return bytes;
}

std::string without_layer(const std::string& name) {
  constexpr std::string_view kLayer = "blk.";
  if (!name.starts_with(kLayer)) return name;
  return name.substr(name.find('.', kLayer.size()) + 1);
}

// Empty for a type that is no number.
std::vector<std::byte> disturbed_number(std::uint32_t type, const std::byte* data) {
  switch (type) {
    case kU32:
    case kI32: {
      const auto value = read_as<std::uint32_t>(data);
      return bytes_of(value > 1 ? value / 2 : value + 1);
    }
    case kF32: {
      const auto value = read_as<float>(data);
      return bytes_of(value == 0.0f ? 0.5f : value * kGrowth);
    }
    case kBool:
      return bytes_of(static_cast<std::uint8_t>(read_as<std::uint8_t>(data) == 0));
    default:
      return {};
  }
}

}  // namespace

Result<MutableGguf> MutableGguf::open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  MutableGguf gguf;
  gguf.bytes_.resize(text.size());
  std::memcpy(gguf.bytes_.data(), text.data(), text.size());
  KVASIR_CHECKED(gguf.find_tensors());
  KVASIR_CHECKED(gguf.find_numbers());
  return gguf;
}

Status MutableGguf::find_tensors() {
  KVASIR_TRY(const io::GgufContents contents, io::parse_gguf(bytes_, "golden"));
  std::set<std::string> seen;
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kBF16)
      return make_error(ErrorKind::kBadFile,
                        fmt::format("tensor {}: goldens have F32 and BF16", tensor.name));
    const std::string what = without_layer(tensor.name);
    if (!seen.insert(what).second) continue;
    const auto begin = static_cast<std::size_t>(tensor.data - bytes_.data());
    tensors_.push_back({what, begin, disturbed_tensor(tensor)});
  }
  return {};
}

// A key lies in the file as its length, its name, its type and its value; an array has the type of its elements
// and their number before them.
Status MutableGguf::find_numbers() {
  KVASIR_TRY(const io::GgufContents contents, io::parse_gguf(bytes_, "golden"));
  KVASIR_TRY(const std::string architecture, contents.metadata.get_string("general.architecture"));
  for (const auto& [key, value] : contents.metadata.values()) {
    if (!key.starts_with(architecture + ".")) continue;
    std::vector<std::byte> pattern = bytes_of(std::uint64_t{key.size()});
    const auto* const name = reinterpret_cast<const std::byte*>(key.data());
    pattern.insert(pattern.end(), name, name + key.size());
    const auto found = std::search(bytes_.begin(), bytes_.end(), pattern.begin(), pattern.end());
    const std::byte* at = bytes_.data() + (found - bytes_.begin()) + pattern.size();
    auto type = read_as<std::uint32_t>(at);
    at += sizeof type;
    if (type == kArray) {
      type = read_as<std::uint32_t>(at);
      at += sizeof type + sizeof(std::uint64_t);
    }
    std::vector<std::byte> other = disturbed_number(type, at);
    if (other.empty()) continue;
    numbers_.push_back({key.substr(architecture.size() + 1), static_cast<std::size_t>(at - bytes_.data()),
                        std::move(other)});
  }
  return {};
}

Result<GgufMutation> MutableGguf::expert(std::int64_t id) const {
  KVASIR_TRY(const io::GgufContents contents, io::parse_gguf(bytes_, "golden"));
  const TensorView* last = nullptr;
  for (const TensorView& tensor : contents.tensors) {
    if (!tensor.name.ends_with(".ffn_down_exps.weight")) continue;
    const auto layer_of = [](const TensorView& each) { return std::stoi(each.name.substr(std::strlen("blk."))); };
    if (last == nullptr || layer_of(tensor) > layer_of(*last)) last = &tensor;
  }
  if (last == nullptr || id >= last->shape[2])
    return make_error(ErrorKind::kBadFile, fmt::format("tensor ffn_down_exps.weight: has no expert {}", id));
  const TensorView rows = last->rows(id * last->shape[1], (id + 1) * last->shape[1]);
  return GgufMutation{fmt::format("expert {}", id), static_cast<std::size_t>(rows.data - bytes_.data()),
                      disturbed_tensor(rows)};
}

Status MutableGguf::write(const GgufMutation& mutation, const std::string& path) const {
  std::vector<std::byte> bytes = bytes_;
  std::ranges::copy(mutation.bytes, bytes.begin() + static_cast<std::ptrdiff_t>(mutation.begin));
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return make_error(ErrorKind::kMachine, path + ": cannot be written");
  return {};
}

}  // namespace kvasir::testing
