#include "lora/tensor_pairs.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"

namespace kvasir::lora {
namespace {

constexpr std::int64_t kMaxRank = 1024;

}  // namespace

Status TensorPairs::put(const std::string& name, Half& half, Half numbers) {
  if (!half.numbers.empty()) return make_error(ErrorKind::kBadFile, fmt::format("{}: it comes twice", printable(name)));
  half = std::move(numbers);
  return {};
}

Status TensorPairs::add_a(const std::string& name, std::int64_t rank, std::int64_t num_inputs, std::vector<float> numbers) {
  return put(name, halves_[name].first, {rank, num_inputs, std::move(numbers)});
}

Status TensorPairs::add_b(const std::string& name, std::int64_t num_outputs, std::int64_t rank, std::vector<float> numbers) {
  return put(name, halves_[name].second, {num_outputs, rank, std::move(numbers)});
}

Result<std::vector<AdapterTensor>> TensorPairs::finish() {
  std::vector<AdapterTensor> tensors;
  for (auto& [name, pair] : halves_) {
    auto& [a, b] = pair;
    if (a.numbers.empty() || b.numbers.empty()) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: there is only lora_{}", printable(name), a.numbers.empty() ? 'b' : 'a'));
    }
    if (a.num_rows != b.num_columns || a.num_rows < 1 || a.num_rows > kMaxRank) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}: ranks {} and {} (they must be equal, at most {})", printable(name),
                                                         a.num_rows, b.num_columns, kMaxRank));
    }
    tensors.push_back({.name = name,
                       .rank = static_cast<std::int32_t>(a.num_rows),
                       .num_inputs = a.num_columns,
                       .num_outputs = b.num_rows,
                       .a = std::move(a.numbers),
                       .b = std::move(b.numbers)});
  }
  return tensors;
}

}  // namespace kvasir::lora
