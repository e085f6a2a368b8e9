#include "io/imatrix_file.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "io/byte_cursor.h"
#include "io/gguf_entries.h"
#include "io/gguf_reader.h"
#include "io/gguf_writer.h"
#include "io/mmap_file.h"

namespace kvasir::io {
namespace {

constexpr std::string_view kSums = ".in_sum2", kCounts = ".counts";

std::unexpected<Error> bad(const std::string& path, std::string_view problem) {
  return make_error(ErrorKind::kBadFile, fmt::format("{}: {}", printable_line(path), problem));
}

std::vector<float> floats_of(const TensorView& tensor) {
  std::vector<float> floats(static_cast<std::size_t>(tensor.num_elements()));
  std::memcpy(floats.data(), tensor.data, floats.size() * sizeof(float));
  return floats;
}

Status check_numbers(const std::string& path, std::string_view name, const std::vector<float>& numbers) {
  for (const float number : numbers) {
    if (std::isfinite(number) && number >= 0.0f) continue;
    return bad(path, fmt::format("tensor {}: {} is no mean of squares", printable(name), number));
  }
  return {};
}

Result<Imatrix> read_gguf_form(const std::string& path, std::span<const std::byte> bytes) {
  KVASIR_TRY(const GgufContents contents, parse_gguf(bytes, path));
  KVASIR_TRY(const auto type, contents.metadata.find_string("general.type"));
  if (type != "imatrix") return bad(path, "is a GGUF file of another kind than an importance matrix (general.type)");
  Imatrix imatrix;
  KVASIR_TRY(const auto* datasets, contents.metadata.find_strings("imatrix.datasets"));
  if (datasets != nullptr) imatrix.datasets = *datasets;
  KVASIR_TRY(const auto chunks, contents.metadata.find_int("imatrix.chunk_count", 0, UINT32_MAX));
  KVASIR_TRY(const auto chunk_size, contents.metadata.find_int("imatrix.chunk_size", 0, UINT32_MAX));
  imatrix.num_chunks = static_cast<std::uint32_t>(chunks.value_or(0));
  imatrix.chunk_tokens = static_cast<std::uint32_t>(chunk_size.value_or(0));
  for (const TensorView& tensor : contents.tensors) {
    if (tensor.dtype != DType::kF32) return bad(path, fmt::format("tensor {}: is not of F32", printable(tensor.name)));
    if (tensor.name.ends_with(kCounts)) {
      imatrix.counts[tensor.name.substr(0, tensor.name.size() - kCounts.size())] = floats_of(tensor);
    } else if (tensor.name.ends_with(kSums)) {
      imatrix.mean_squares[tensor.name.substr(0, tensor.name.size() - kSums.size())] = floats_of(tensor);
    }
  }
  for (auto& [name, sums] : imatrix.mean_squares) {
    const auto counts = imatrix.counts.find(name);
    if (counts == imatrix.counts.end() || counts->second.empty() || sums.size() % counts->second.size() != 0) {
      return bad(path, fmt::format("tensor {}{}: no counts fit to it", printable(name), kSums));
    }
    KVASIR_CHECKED(check_numbers(path, name, counts->second));
    const std::size_t num_inputs = sums.size() / counts->second.size();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float count = counts->second[i / num_inputs];
      sums[i] = count > 0.0f ? sums[i] / count : 0.0f;
    }
    KVASIR_CHECKED(check_numbers(path, name, sums));
  }
  return imatrix;
}

// Number of entries; of each its name, calls, numbers, and as many sums over calls; then the last chunk and the text's name.
Result<Imatrix> read_old_form(const std::string& path, std::span<const std::byte> bytes) {
  constexpr std::int32_t kMostEntries = 1 << 20, kMostNameBytes = 4096;
  ByteCursor cursor(bytes);
  const auto ends = [&] { return bad(path, "is no importance matrix, or ends too early"); };
  const auto num_entries = cursor.take<std::int32_t>();
  if (!num_entries || *num_entries < 1 || *num_entries > kMostEntries) return ends();
  Imatrix imatrix;
  for (std::int32_t i = 0; i < *num_entries; ++i) {
    const auto length = cursor.take<std::int32_t>();
    if (!length || *length < 1 || *length > kMostNameBytes) return ends();
    const auto name = cursor.take_text(static_cast<std::uint64_t>(*length));
    const auto num_calls = cursor.take<std::int32_t>();
    const auto num_values = cursor.take<std::int32_t>();
    if (!name || !num_calls || !num_values || *num_values < 1 || *num_calls < 0) return ends();
    const auto values = cursor.take_text(static_cast<std::uint64_t>(*num_values) * sizeof(float));
    if (!values) return ends();
    std::vector<float> numbers(static_cast<std::size_t>(*num_values));
    std::memcpy(numbers.data(), values->data(), values->size());
    for (float& number : numbers) number /= static_cast<float>(*num_calls > 0 ? *num_calls : 1);
    KVASIR_CHECKED(check_numbers(path, *name, numbers));
    imatrix.counts[std::string(*name)] = {static_cast<float>(*num_calls)};
    imatrix.mean_squares[std::string(*name)] = std::move(numbers);
  }
  imatrix.num_chunks = static_cast<std::uint32_t>(cursor.take<std::int32_t>().value_or(0));
  if (const auto length = cursor.take<std::int32_t>(); length && *length > 0) {
    if (const auto name = cursor.take_text(static_cast<std::uint64_t>(*length))) imatrix.datasets.emplace_back(*name);
  }
  return imatrix;
}

}  // namespace

Result<Imatrix> parse_imatrix(std::span<const std::byte> bytes, const std::string& path) {
  constexpr std::string_view kMagic = "GGUF";
  const bool is_gguf = bytes.size() >= kMagic.size() && std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
  return is_gguf ? read_gguf_form(path, bytes) : read_old_form(path, bytes);
}

Result<Imatrix> read_imatrix(const std::string& path) {
  KVASIR_TRY(const MmapFile file, MmapFile::open(path));
  return parse_imatrix(file.bytes(), path);
}

Status write_imatrix(const Imatrix& imatrix, const std::string& path) {
  std::vector<GgufEntry> entries = {string_entry("general.type", "imatrix"),
                                    strings_entry("imatrix.datasets", imatrix.datasets),
                                    uint32_entry("imatrix.chunk_count", imatrix.num_chunks),
                                    uint32_entry("imatrix.chunk_size", imatrix.chunk_tokens)};
  std::vector<TensorView> tensors;
  std::vector<std::vector<float>> contents;
  for (const auto& [name, means] : imatrix.mean_squares) {
    const std::vector<float>& counts = imatrix.counts.at(name);
    const auto num_experts = std::ssize(counts), num_inputs = std::ssize(means) / num_experts;
    std::vector<float> sums = means;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] *= counts[i / static_cast<std::size_t>(num_inputs)];
    tensors.push_back({.name = name + std::string(kCounts), .rank = 2, .shape = {1, num_experts, 1, 1}});
    contents.push_back(counts);
    tensors.push_back({.name = name + std::string(kSums), .rank = 2, .shape = {num_inputs, num_experts, 1, 1}});
    contents.push_back(std::move(sums));
  }
  const GgufLayout layout(entries, std::move(tensors));
  KVASIR_TRY(GgufWriter writer, GgufWriter::open(path, layout));
  for (std::size_t i = 0; i < contents.size(); ++i) {
    KVASIR_CHECKED(writer.write(i, 0, std::as_bytes(std::span(contents[i]))));
  }
  return writer.finish();
}

}  // namespace kvasir::io
