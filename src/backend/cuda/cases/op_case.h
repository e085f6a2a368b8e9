// One op with its inputs and the bits it must give: what tests run on the host executor, and scripts/gpu_check.sh on
// a device. Expected bits come from the CPU's vector kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvasir::cuda {

enum class ArrayRole : std::uint8_t { kInput, kInOut, kOutput };
enum class ArrayKind : std::uint8_t { kBytes, kFloats };  // two NaN are equal floats

struct CaseArray {
  ArrayRole role = ArrayRole::kInput;
  ArrayKind kind = ArrayKind::kBytes;
  std::vector<std::byte> content;   // before; of an output empty
  std::vector<std::byte> expected;  // after; of an input empty
};

struct OpCase {
  std::string op;    // what run_case() calls
  std::string name;  // shape and seed
  std::vector<std::int64_t> numbers;
  std::vector<CaseArray> arrays;

  template <class T>
  void add_input(std::span<const T> content) {
    arrays.push_back({ArrayRole::kInput, ArrayKind::kBytes, copy_of(content), {}});
  }
  template <class T>
  void add_output(ArrayKind kind, std::span<const T> expected) {
    arrays.push_back({ArrayRole::kOutput, kind, {}, copy_of(expected)});
  }
  template <class T>
  void add_in_out(ArrayKind kind, std::span<const T> content, std::span<const T> expected) {
    arrays.push_back({ArrayRole::kInOut, kind, copy_of(content), copy_of(expected)});
  }

 private:
  template <class T>
  static std::vector<std::byte> copy_of(std::span<const T> content) {
    const auto bytes = std::as_bytes(content);
    return {bytes.begin(), bytes.end()};
  }
};

// Where the arrays that a run left differ from those expected: an empty line where they do not.
std::string difference(const OpCase& op, const std::vector<std::vector<std::byte>>& outputs);

// A file of cases, for a machine that has neither the CPU's kernels nor their libraries. Both return false when the
// file cannot be written, or is none.
bool write_cases(const char* path, std::span<const OpCase> cases);
bool read_cases(const char* path, std::vector<OpCase>& cases);

}  // namespace kvasir::cuda
