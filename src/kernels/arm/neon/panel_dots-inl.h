// The dots of a panel's block, outlier codes included, where a token's sums may start before its products. Included
// inside an ISA's namespace and target region, after what adds to the dots of kPanelTokens tokens: add_panel_groups_of_4
// some groups of 4, and add_panel_group_of_4 one of outlier codes.

// The dots of groups of 4 [kBegin, kEnd) of a block, the outlier codes first. `start_of` says where a token's
// start.
template <int kBegin, int kEnd, int kBits, int kVectors, class StartOf>
KVASIR_FORCE_INLINE void dot_panel(const PanelGroupOf4<kBits, kVectors> (&codes)[kGroupsOf4PerBlock],
                                   const QuartetBlock& in, const StartOf& start_of,
                                   PanelDots<kVectors>& dots) {
  unsigned outlier_groups = in.outlier_groups & ((1u << kEnd) - (1u << kBegin));
  if (outlier_groups == 0) {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = start_of(in.x[t]);
    }
  } else {
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = zero_int_lanes();
    }
    do {
      const int j = std::countr_zero(outlier_groups);
      add_panel_group_of_4(codes, j, in.outliers->q + 4 * j, dots);
      outlier_groups &= outlier_groups - 1;
    } while (outlier_groups != 0);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) dots[t][v] = add_outliers(start_of(in.x[t]), dots[t][v]);
    }
  }
  add_panel_groups_of_4<kEnd - kBegin>(codes + kBegin, in.x->q + 4 * kBegin, dots);
}
