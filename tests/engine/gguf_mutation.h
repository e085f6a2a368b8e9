// Copies of a GGUF file that each differ in one tensor or one number of the metadata.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::testing {

struct GgufMutation {
  std::string what;              // a tensor without "blk.N.", or a key without the architecture
  std::size_t begin = 0;         // of the bytes that are replaced
  std::vector<std::byte> bytes;  // instead of those
};

class MutableGguf {
 public:
  // Errors: kBadFile when it cannot be read or is no GGUF file.
  static Result<MutableGguf> open(const std::string& path);

  // One of each kind of tensor: every other value grows and the others shrink, in the first layer that has one.
  const std::vector<GgufMutation>& tensors() const { return tensors_; }
  // One of each of the architecture's numbers, an array's first included: counts are halved, truths turned around.
  const std::vector<GgufMutation>& numbers() const { return numbers_; }

  // Disturbs what one expert of the last layer gives. Errors: kBadFile without such an expert.
  Result<GgufMutation> expert(std::int64_t id) const;

  // The file with one mutation. Errors: kMachine when it cannot be written.
  Status write(const GgufMutation& mutation, const std::string& path) const;

 private:
  MutableGguf() = default;
  Status find_tensors();
  Status find_numbers();

  std::vector<std::byte> bytes_;
  std::vector<GgufMutation> tensors_, numbers_;
};

}  // namespace kvasir::testing
