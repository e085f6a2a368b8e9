// The GGUF container: header, metadata, tensor list and the place of each tensor's bytes.
//
// Source of the layout: the GGUF specification (ggml, docs/gguf.md), versions 2 and 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/metadata.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::io {

struct GgufContents {
  std::uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorView> tensors;  // in file order; they point into the bytes that were parsed
  std::vector<UnsupportedTensor> unsupported;  // of types that no kernel reads
};

// Checks and indexes a whole GGUF file held in `bytes`, which must be aligned to 8 and outlive the result.
// Never reads outside `bytes` and takes memory in proportion to the metadata only, whatever they contain.
// Errors: kBadFile; the message is one line "<name>: <section>: <what, limit, value>".
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, std::string_view name,
                                TensorTypes types = TensorTypes::kSupported);

// Whether the bytes, the first of a file, hold all that comes before its tensors' data. False too for bytes that are no
// GGUF file.
bool has_whole_header(std::span<const std::byte> bytes);

}  // namespace kvasir::io
