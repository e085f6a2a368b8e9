#include "kernels/arm/kernels.h"
#include "kernels/arm/neon/i16x32.h"
#include "kernels/prefetch.h"

namespace kvasir::kernels::neon {

#include "kernels/generic/activation_fn-inl.h"
#include "kernels/generic/attention/attention-inl.h"
#include "kernels/generic/attention/merge-inl.h"
#include "kernels/generic/kv/measure-inl.h"
#include "kernels/generic/kv/write-inl.h"
#include "kernels/generic/norm-inl.h"
#include "kernels/generic/rope-inl.h"
#include "kernels/generic/vocabulary-inl.h"

}  // namespace kvasir::kernels::neon
