// Op cases with random shapes and fixed seeds; what they expect is what the kernels of a table give.
#pragma once

#include <vector>

#include "backend/cuda/cases/op_case.h"
#include "kernels/table.h"

namespace kvasir::cuda {

std::vector<OpCase> make_matvec_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_matmul_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_w8a8_matmul_cases(const kernels::KernelTable& table);  // and matvecs
std::vector<OpCase> make_quantize_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_w8a8_quantize_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_norm_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_elementwise_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_tile_maxima_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_embed_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_rope_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_attention_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_merge_cases(const kernels::KernelTable& table);
std::vector<OpCase> make_move_cases(const kernels::KernelTable& table);

// All of the above.
std::vector<OpCase> make_all_cases(const kernels::KernelTable& table);

}  // namespace kvasir::cuda
