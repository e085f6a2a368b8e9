// The features that a target region (kernels/target_region.h) of each of x86's instruction sets may use.
#pragma once

#include "kernels/target_region.h"

#define KVASIR_TARGET_AVX2 ("avx2,fma,f16c")
#define KVASIR_TARGET_AVX512 ("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")
#define KVASIR_TARGET_AMX ("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,amx-tile,amx-int8")
