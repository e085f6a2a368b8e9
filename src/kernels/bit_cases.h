// Every kernel on fixed random inputs, and a hash of what it gives: the vector kernels of all architectures give
// the same bits. tests/cases/kernels/vector_bits.txt has the hashes, made on x86 by kvasir_kernel_bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/table.h"

namespace kvasir::kernels {

struct BitCase {
  std::string name;  // without a line break
  std::uint64_t hash = 0;

  // A line of the file: the hash, a space, the name.
  std::string to_string() const;
};

// The results are those of a table of vector kernels. `ref` differs within its tolerance. Two NaN count as equal.
std::vector<BitCase> bit_cases(const KernelTable& table);

}  // namespace kvasir::kernels
