// Where the sums of a panel start, for codes that are in it as they are elsewhere: start_sum, start_low_sum and
// start_high_sum. Included inside an ISA's namespace and target region.

template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_panel_sum(const ActivationBlock& x) {
  return start_sum<kBits, kZeroShift>(x);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_low_panel_sum(const ActivationBlock& x) {
  return start_low_sum<kBits, kZeroShift>(x);
}
template <int kBits, int kZeroShift>
KVASIR_FORCE_INLINE IntLanes start_high_panel_sum(const ActivationBlock& x) {
  return start_high_sum<kBits, kZeroShift>(x);
}
