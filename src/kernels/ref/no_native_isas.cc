// For processors that no folder has kernels for: `ref` is all there is.
#include "kernels/isa.h"

namespace kvasir::kernels {

std::span<const Isa> native_isas() { return {}; }

}  // namespace kvasir::kernels
