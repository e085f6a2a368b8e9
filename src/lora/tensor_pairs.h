// The two halves of each addition, until both are there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kvasir/result.h"
#include "lora/adapter_file.h"

namespace kvasir::lora {

// Thread safety: none.
class TensorPairs {
 public:
  // [rank, num_inputs], [num_outputs, rank]. Errors (kBadFile): one comes twice.
  Status add_a(const std::string& name, std::int64_t rank, std::int64_t num_inputs, std::vector<float> numbers);
  Status add_b(const std::string& name, std::int64_t num_outputs, std::int64_t rank, std::vector<float> numbers);
  // Ascending by name. Errors (kBadFile): a half is missing, ranks differ, or are 0 or above 1024.
  Result<std::vector<AdapterTensor>> finish();

 private:
  struct Half {
    std::int64_t num_rows = 0, num_columns = 0;
    std::vector<float> numbers;  // empty: not there
  };
  static Status put(const std::string& name, Half& half, Half numbers);

  std::map<std::string, std::pair<Half, Half>> halves_;  // a, b by name of the matrix
};

}  // namespace kvasir::lora
