set(KVASIR_NATIVE_KERNELS
  arm/cpu_features.cc
  arm/dotprod/matmul.cc
  arm/dotprod/probe.cc
  arm/i8mm/matmul.cc
  arm/isas.cc
  arm/neon/float_kernels.cc
  arm/neon/matmul.cc
  arm/neon/probe.cc
  arm/neon/quantize.cc)
# The sanitizers' checks are calls in these files.
set(KVASIR_UNROLLED_KERNELS arm/dotprod/matmul.cc arm/i8mm/matmul.cc arm/neon/matmul.cc)
