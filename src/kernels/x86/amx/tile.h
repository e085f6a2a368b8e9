// AMX's tile registers: their shapes, and the four things done with them. Tile registers belong to the
// thread; compilers do not allocate them, so what is named here is the caller's to keep apart.
#pragma once

#include <cstdint>

#include "kernels/force_inline.h"
#include "kernels/x86/target_features.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AMX)
namespace kvasir::kernels::amx {

// The operand of ldtilecfg, by Intel's manual.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  constexpr void shape(int tile, int num_rows, int num_row_bytes) {
    rows[tile] = static_cast<std::uint8_t>(num_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(num_row_bytes);
  }
};

// Gives this thread's tiles their shapes, and the processor leave to forget the tiles.
KVASIR_FORCE_INLINE void shape_tiles(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
KVASIR_FORCE_INLINE void release_tiles() { asm volatile("tilerelease" ::: "memory"); }

// The "memory" clobbers keep the compiler from moving what a tile reads or writes to the other side.
template <int kTile>
KVASIR_FORCE_INLINE void load_tile(const void* rows, std::int64_t stride_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
}
template <int kTile>
KVASIR_FORCE_INLINE void store_tile(void* rows, std::int64_t stride_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride_bytes), "i"(kTile) : "memory");
}
// kSum = kA kB, where A [rows, inputs] and B [inputs / 4, columns, 4] are signed bytes.
template <int kSum, int kA, int kB>
KVASIR_FORCE_INLINE void multiply_tiles() {
  asm volatile(
      "tilezero %%tmm%c0\n\t"
      "tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum),
      "i"(kA), "i"(kB));
}

}  // namespace kvasir::kernels::amx
KVASIR_TARGET_END
