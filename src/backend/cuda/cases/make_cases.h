// Op cases with random shapes and fixed seeds; what they expect is what the kernels of a table give.
#pragma once

#include <vector>

#include "backend/cuda/cases/op_case.h"
#include "kernels/table.h"

namespace kvasir::cuda {

std::vector<OpCase> make_matvec_cases(const kernels::KernelTable& table);

}  // namespace kvasir::cuda
