// The element types that a weight tensor can have, and what is known of each at run time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "quant/float_field.h"

namespace kvasir {

// kQ* are GGUF block formats: a block of `block_elements` consecutive elements of one row shares its scales.
enum class DType : std::uint8_t {
#define KVASIR_FORMAT(dtype, Format) dtype,
#include "quant/formats.def"
#undef KVASIR_FORMAT
};

inline constexpr int kNumDTypes = 0
#define KVASIR_FORMAT(dtype, Format) +1
#include "quant/formats.def"
#undef KVASIR_FORMAT
    ;

namespace quant {

// The traits of every format; defined in quant/<fmt>/format.h.
#define KVASIR_FORMAT(dtype, Format) struct Format;
#include "quant/formats.def"
#undef KVASIR_FORMAT

// The DType of a format's traits.
template <class Format>
inline constexpr DType kDTypeOf = {};
#define KVASIR_FORMAT(dtype, Format) \
  template <>                        \
  inline constexpr DType kDTypeOf<Format> = DType::dtype;
#include "quant/formats.def"
#undef KVASIR_FORMAT

// Widens one row of `num_elements` (a multiple of the format's block) in its file layout to float32.
// `row` needs no alignment. This is the definition of each format's numbers; kernels are checked against it.
using UnpackRow = void (*)(const void* row, std::int64_t num_elements, float* out);
// Whether every float that a row stores is finite. Reads each of them once, at about the speed of memory.
using IsFiniteRow = bool (*)(const void* row, std::int64_t num_elements);

}  // namespace quant

// A format's traits as a value.
struct DTypeInfo {
  DType dtype = {};
  std::string_view name;            // as GGUF tools print it
  std::uint32_t gguf_type = 0;      // its number in a GGUF file
  std::int32_t block_elements = 0;  // a row's length is a multiple of this
  std::int32_t block_bytes = 0;
  std::span<const quant::FloatField> floats;  // of a block: weights, or scales and minima
  quant::UnpackRow unpack_row = nullptr;
  quant::IsFiniteRow is_finite_row = nullptr;
};

extern const std::array<DTypeInfo, kNumDTypes> kDTypeInfos;  // by DType

inline const DTypeInfo& info_of(DType dtype) { return kDTypeInfos[static_cast<std::size_t>(dtype)]; }
inline std::string_view name_of(DType dtype) { return info_of(dtype).name; }

// Bytes of one row of `num_elements`, which must be a multiple of the block length.
inline std::int64_t row_bytes(DType dtype, std::int64_t num_elements) {
  return num_elements / info_of(dtype).block_elements * info_of(dtype).block_bytes;
}

}  // namespace kvasir
