// A folder's tensors under GGUF's names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/hf_mapping.h"
#include "io/row_reader.h"
#include "io/safetensors.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::io {

class HfConfig;
class HfQuantization;
class Metadata;

struct MappedTensor {
  TensorView view;  // data is null when the rows are computed
  RowReaderPtr rows;
};

struct MappedTensors {
  std::vector<MappedTensor> tensors;  // in the order of the first stored tensor of each
  std::vector<std::string> left_out;  // stored names of parts that text needs not
};

// The part of the configuration that the names depend on.
struct HfLayers {
  std::int64_t num_layers = 0;
  std::int64_t num_extra_layers = 0;  // behind the others; they guess further tokens, and are left out
  std::int64_t num_heads = 1;
  std::vector<HfBias> biases = {};  // of the mapping's, those that the configuration demands
};
// `values` are the configuration's in GGUF's terms. Errors: kBadFile naming the key: missing or of another type.
Result<HfLayers> layers_of(const HfConfig& config, const HfMapping& mapping, const Metadata& values);

// Errors: kBadFile naming the tensor: one that the mapping does not know, one of a type or with more axes than can be
// read, one that two stored tensors make, experts that are missing or differ, a bias that must be there.
Result<MappedTensors> map_tensors(std::span<const SafetensorsTensor> stored, const HfMapping& mapping,
                                  const HfLayers& layers, const HfQuantization& quantization);
// The same for whoever only describes the folder: every error, in the order of the tensors.
std::vector<Error> tensor_faults(std::span<const SafetensorsTensor> stored, const HfMapping& mapping,
                                 const HfLayers& layers, const HfQuantization& quantization);

}  // namespace kvasir::io
