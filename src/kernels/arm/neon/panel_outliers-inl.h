// Adds group of 4 j of outlier codes to the dots of a panel's tokens. Included inside an ISA's namespace and target
// region, after its add_group_of_4 and load_panel_group_of_4.

template <int kBits, int kVectors>
KVASIR_FORCE_INLINE void add_panel_group_of_4(const PanelGroupOf4<kBits, kVectors>* codes, int j,
                                              const std::int8_t* q, PanelDots<kVectors>& dots) {
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const CodeLanes group_of_4 = load_panel_group_of_4(codes, j, v);
#pragma GCC unroll 4
    for (int t = 0; t < kPanelTokens; ++t) {
      dots[t][v] = add_group_of_4<kBits>(dots[t][v], group_of_4, q + t * sizeof(OutlierCodes));
    }
  }
}
