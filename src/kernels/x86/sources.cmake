set(KVASIR_NATIVE_KERNELS
  x86/amx/matmul.cc
  x86/avx2/float_kernels.cc
  x86/avx2/matmul.cc
  x86/avx2/probe.cc
  x86/avx2/quantize.cc
  x86/avx512/float_kernels.cc
  x86/avx512/matmul.cc
  x86/avx512/probe.cc
  x86/avx512/quantize.cc
  x86/cpu_features.cc
  x86/isas.cc)
# The sanitizers' checks are calls in these files.
set(KVASIR_UNROLLED_KERNELS x86/amx/matmul.cc x86/avx2/matmul.cc x86/avx512/matmul.cc)
