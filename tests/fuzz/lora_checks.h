// What an adapter's reader must have got right.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "lora/adapter_file.h"

namespace kvasir::testing {

inline void check_adapter(const Result<std::vector<lora::AdapterTensor>>& tensors) {
  if (!tensors) {
    CHECK(!tensors.error().message.empty() && tensors.error().message.find('\n') == std::string::npos);
    return;
  }
  for (const lora::AdapterTensor& tensor : *tensors) {
    CHECK(tensor.rank > 0 && tensor.num_inputs > 0 && tensor.num_outputs > 0);
    CHECK(std::ssize(tensor.a) == tensor.rank * tensor.num_inputs);
    CHECK(std::ssize(tensor.b) == tensor.num_outputs * tensor.rank);
  }
}

}  // namespace kvasir::testing
