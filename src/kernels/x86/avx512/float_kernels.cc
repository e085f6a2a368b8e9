#include "kernels/prefetch.h"
#include "kernels/x86/avx512/i16x32.h"
#include "kernels/x86/kernels.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

#include "kernels/generic/activation_fn-inl.h"
#include "kernels/generic/attention/attention-inl.h"
#include "kernels/generic/attention/merge-inl.h"
#include "kernels/generic/kv/measure-inl.h"
#include "kernels/generic/kv/write-inl.h"
#include "kernels/generic/norm-inl.h"
#include "kernels/generic/rope-inl.h"
#include "kernels/generic/vocabulary-inl.h"

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
