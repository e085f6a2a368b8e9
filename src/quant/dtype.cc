#include "quant/dtype.h"

#include "quant/finite.h"
#include "quant/formats.h"

namespace kvasir {
namespace {

template <class Format>
constexpr DTypeInfo describe() {
  return {.dtype = quant::kDTypeOf<Format>,
          .name = Format::kName,
          .gguf_type = Format::kGgufType,
          .block_elements = Format::kBlockElements,
          .block_bytes = sizeof(typename Format::Block),
          .floats = Format::kFloats,
          .unpack_row = Format::unpack_row,
          .is_finite_row = quant::is_finite_row<Format>};
}

}  // namespace

constinit const std::array<DTypeInfo, kNumDTypes> kDTypeInfos = {{
#define KVASIR_FORMAT(dtype, Format) describe<quant::Format>(),
#include "quant/formats.def"
#undef KVASIR_FORMAT
}};

}  // namespace kvasir
