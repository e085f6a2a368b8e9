#include <iterator>
#include <utility>

#include "backend/cuda/cases/make_cases.h"

namespace kvasir::cuda {

std::vector<OpCase> make_all_cases(const kernels::KernelTable& table) {
  std::vector<OpCase> all;
  for (const auto make :
       {make_matvec_cases, make_matmul_cases, make_w8a8_matmul_cases, make_quantize_cases, make_w8a8_quantize_cases,
        make_norm_cases, make_elementwise_cases, make_tile_maxima_cases, make_embed_cases, make_rope_cases, make_attention_cases, make_merge_cases, make_move_cases}) {
    for (OpCase& each : make(table)) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace kvasir::cuda
