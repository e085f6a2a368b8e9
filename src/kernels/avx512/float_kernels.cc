#include "kernels/float_kernels.h"

#include "kernels/avx512/words.h"
#include "kernels/prefetch.h"

KVASIR_TARGET_BEGIN(KVASIR_TARGET_AVX512)
namespace kvasir::kernels::avx512 {

#include "kernels/generic/activation_fn-inl.h"
#include "kernels/generic/attention-inl.h"
#include "kernels/generic/attention_merge-inl.h"
#include "kernels/generic/kv_measure-inl.h"
#include "kernels/generic/kv_write-inl.h"
#include "kernels/generic/norm-inl.h"
#include "kernels/generic/rope-inl.h"
#include "kernels/generic/vocabulary-inl.h"

}  // namespace kvasir::kernels::avx512
KVASIR_TARGET_END
