// Writes all op cases with the bits of this host's best instruction set: kvasir_cuda_cases FILE.
#include <cstdio>

#include "backend/cuda/cases/make_cases.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: kvasir_cuda_cases FILE\n", stderr);
    return 2;
  }
  const kvasir::kernels::KernelTable& table = kvasir::kernels::best_table();
  const std::vector<kvasir::cuda::OpCase> cases = kvasir::cuda::make_all_cases(table);
  if (!kvasir::cuda::write_cases(argv[1], cases)) {
    std::fprintf(stderr, "cannot write %s\n", argv[1]);
    return 1;
  }
  std::printf("%zu cases with the bits of %s\n", cases.size(), table.isa);
}
