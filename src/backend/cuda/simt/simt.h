// The only door of kernels to a device: threads, shared memory, barriers, warps, exact integer matrix products,
// asynchronous copies, and arithmetic that rounds alike on every machine.
//
// A kernel is a .cu file of C++20 over this header. nvcc compiles it to a device's code, where each function is an
// instruction or two (device.h). A C++ compiler compiles the same file for the host executor (host.h), which finds
// races and other bugs by name. scripts/check_kernels.py refuses whatever goes round the door.
//
//   KVASIR_KERNEL(threads) void name(Args args)   a kernel; `threads` is the most that a block has
//   KVASIR_DEVICE float name(...)                 a function of kernels
//   launch<kernel>(device, grid, threads, shared_bytes, args...)   from host code of the same file
//
// All memory is read by load and written by store, 1, 2, 4, 8 or 16 bytes at a multiple of their number. Every
// lane of a warp takes part in a collective, and every thread of a block in a barrier. Blocks of a launch share
// nothing that one of them writes. Fused multiply-adds are fma_rn; `*` and `+` never fuse (-fmad=false).
#pragma once

#if defined(__CUDACC__)
#include "backend/cuda/simt/device.h"
#else
#include "backend/cuda/simt/host.h"
#endif

namespace kvasir::simt {

// Greater or less of two, as the vector instructions have it: a NaN in either gives b.
KVASIR_DEVICE float max_or_second(float a, float b) { return a > b ? a : b; }
KVASIR_DEVICE float min_or_second(float a, float b) { return a < b ? a : b; }

KVASIR_DEVICE float magnitude(float x) { return float_of_bits(bits_of(x) & 0x7fffffffu); }
KVASIR_DEVICE float infinity() { return float_of_bits(0x7f800000u); }
KVASIR_DEVICE float quiet_nan() { return float_of_bits(0x7fc00000u); }

}  // namespace kvasir::simt
