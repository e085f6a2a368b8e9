// Matmul of one token by units of 2:4. Included inside an instruction set's namespace and target region, after its
// sparse_dot().

KVASIR_FORCE_INLINE void kept_codes(const SparseQ8_0& unit, int block, int lane, CodeLanes* codes) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) codes[j] = load_byte_codes(unit.codes[block][j] + 4 * lane);
}

KVASIR_FORCE_INLINE void kept_codes(const SparseQ4_0& unit, int block, int lane, CodeLanes* codes) {
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    const CodeLanes both = load_codes(unit.nibbles[block][j] + 4 * lane);
    codes[j] = low_nibbles<0>(both);
    codes[j + 2] = high_nibbles<0>(both);
  }
}

inline constexpr int kPrefetchBytes = 3072;  // as the dense kernels ask ahead

template <class Unit>
void sparse_matmul(const SparseArgs& args) {
  const std::int64_t num_units = args.k / (32 * Unit::kBlocks);
  const auto* units = static_cast<const Unit*>(args.units);
  for (std::int64_t group = 0; group < args.num_groups; ++group, units += num_units) {
    for (int lane = 0; lane < kPackedRows; lane += kLanes) {
      FloatLanes sum = zero_lanes();
      const ActivationBlock* x = args.x;
      for (std::int64_t u = 0; u < num_units; ++u) {
#pragma GCC unroll 16
        for (int line = 0; line < static_cast<int>(sizeof(Unit) / 64); ++line) {
          prefetch_into_l2(reinterpret_cast<const char*>(units + u) + kPrefetchBytes + 64 * line);
        }
#pragma GCC unroll 2
        for (int b = 0; b < Unit::kBlocks; ++b, ++x) {
          CodeLanes codes[4];
          kept_codes(units[u], b, lane, codes);
          const CodeLanes places = load_codes(units[u].places[b] + 4 * lane);
          const FloatLanes scale = load_half_lanes(units[u].scales[b] + lane);
          sum = fma(to_float(sparse_dot<Unit::kBits>(codes, places, x->q)),
                    mul(scale, broadcast_lanes(x->scale)), sum);
        }
      }
      store_lanes(args.out + group * kPackedRows + lane, sum, kLanes);
    }
  }
}
