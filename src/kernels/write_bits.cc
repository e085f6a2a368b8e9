// Prints the bits of an instruction set's kernels, the best by default: kvasir_kernel_bits [ISA]
#include <cstdio>

#include "kernels/bit_cases.h"

int main(int argc, char** argv) {
  using namespace kvasir::kernels;
  const KernelTable* table = argc > 1 ? find_table(argv[1]) : &best_table();
  if (table == nullptr) {
    std::fprintf(stderr, "this host does not run %s\n", argv[1]);
    return 2;
  }
  for (const BitCase& each : bit_cases(*table)) std::puts(each.to_string().c_str());
}
