// Kernel tests run once per instruction set that this host has.
#pragma once

#include <gtest/gtest.h>

#include <ranges>
#include <string>
#include <vector>

#include "kernels/isa.h"

namespace kvasir::kernels {

// The tables of this host, `ref` first.
inline std::vector<const KernelTable*> host_tables() {
  std::vector<const KernelTable*> tables;
  for (const Isa& isa : std::views::reverse(host_isas())) tables.push_back(&isa.table);
  return tables;
}

// Without `ref`.
inline std::vector<const KernelTable*> vector_tables() {
  std::vector<const KernelTable*> tables = host_tables();
  tables.erase(tables.begin());
  return tables;
}

class EveryIsa : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& table() const { return *GetParam(); }
};

inline std::string isa_name(const testing::TestParamInfo<const KernelTable*>& info) {
  return info.param->isa;
}

}  // namespace kvasir::kernels
