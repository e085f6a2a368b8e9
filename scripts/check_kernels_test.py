#!/usr/bin/env python3
"""check_kernels.py finds each way round the door where one is planted, and nothing in a kernel without any."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_kernels

CLEAN = """\
// A comment may speak of __syncthreads(), asm, std::vector and threadIdx.
#include <cstdint>
#include "backend/cuda/simt/simt.h"
#include "kernels/packed.h"
namespace {
constexpr int kThreads = 128;
struct Part {
  KVASIR_DEVICE static Part at(int i) { return {i}; }
  static constexpr int bytes() { return 4; }
  int i;
};
KVASIR_KERNEL(kThreads) void scale(const float* x, float factor, std::int64_t n, float* out) {
  const std::int64_t i = simt::thread_index();
  if (i < n) simt::store(out + i, simt::fma_rn(simt::load(x + i), factor, exp_rn(0.0f)));
}
}  // namespace
void launch_scale() { simt::launch<scale>(device, {1}, kThreads, 0, x, factor, n, out); }
"""
PLANTED = {
    "intrinsic": "float y = __fmaf_rn(a, b, c);",
    "keyword": "__shared__ float tile[32];",
    "assembly": 'asm volatile("bar.sync 0;");',
    "float atomic": "atomicAdd(out, x);",
    "atomic of a library": "cuda::atomic_ref<float> sum(*out);",
    "dynamic parallelism": "scale<<<1, 32>>>(x, 2.0f, n, out);",
    "thread index of CUDA": "int i = threadIdx.x;",
    "vector type of CUDA": "float4 v = make(x);",
    "call of the runtime": "cudaDeviceSynchronize();",
    "container": "std::vector<float> tile(32);",
    "math of the standard library": "float y = std::fma(a, b, c);",
    "math of the C library": "float y = expf(x);",
    "fused multiply-add of the C library": "float y = fmaf(a, b, c);",
    "math of the global namespace": "float y = ::expf(x);",
    "another function of the C library": "float y = rsqrtf(x) + cosf(x) + floorf(x);",
    "half of CUDA": "half h;",
    "clock": "auto t = clock64();",
    "assertion": "assert(i < n);",
    "names open to all": "using namespace std;",
    "pasted name": "#define P(a, b) a##b",
    "assembly between quotes": "char c = '\"'; asm(\"x\"); char d = '\"';",
    "memory function": "memcpy(tile, x, 64);",
    "allocation": "float* tile = new float[32];",
    "static variable": "  static int calls = 0;",
    "header of the standard library": "#include <cmath>",
    "header of CUDA": "#include <cuda_fp16.h>",
    "header of the device alone": '#include "backend/cuda/simt/device.h"',
    "header that is not plain": '#include "backend/backend.h"',
}


def faults(text):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        path = root / check_kernels.FOLDER / "scale.cu"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        return check_kernels.check(root)[0]


class CheckKernels(unittest.TestCase):
    def test_a_clean_kernel_has_no_fault(self):
        self.assertEqual(faults(CLEAN), [])

    def test_every_planted_fault_is_found_in_its_line(self):
        for name, line in PLANTED.items():
            with self.subTest(name):
                found = faults(CLEAN + line + "\n")
                self.assertTrue(found, "missed")
                self.assertTrue(all(f":{len(CLEAN.splitlines()) + 1}:" in each for each in found), found)


if __name__ == "__main__":
    unittest.main()
