// The safetensors container: a JSON header with the type, shape and place of each tensor, and their bytes.
//
// Source of the layout: the format's description at huggingface/safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"

namespace kvasir::io {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                // as the header spells it: "BF16", "F8_E4M3"
  std::vector<std::int64_t> shape;  // the last varies fastest; empty: a scalar
  std::span<const std::byte> data;  // of exactly that type and shape; may start at any address

  std::int64_t num_elements() const;
};

// Checks and indexes a whole file held in `bytes`, which must outlive the result. Never reads outside `bytes`.
// The tensors come in the order of their bytes. Errors: kBadFile, one line that begins with `name` and names
// the tensor: a header that is longer than the file or 100 MB, repeated names, unknown types, sizes that differ
// from type and shape, overlaps and holes.
Result<std::vector<SafetensorsTensor>> parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

}  // namespace kvasir::io
