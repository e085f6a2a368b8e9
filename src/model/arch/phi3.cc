// Phi-3, 3.5, 4 and 4-mini: the Llama shape with joint matrices, longrope and, in the models of 4096 tokens, a
// window (Abdin et al. 2024).
#include "model/arch/dense.h"

namespace kvasir::model {
namespace {

Status configure_phi3(const io::WeightSource& source, ModelConfig& config) {
  return split_windows(source, {.period = WindowPattern::kEveryLayer}, config);
}

}  // namespace

const Architecture kPhi3 = {"phi3", configure_phi3, load_dense<DenseShape{}>};

}  // namespace kvasir::model
