// Weights that a folder stores in the form of another engine's quantisation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/external_rows.h"
#include "io/hf_config.h"
#include "io/row_reader.h"
#include "io/safetensors.h"
#include "kvasir/result.h"

namespace kvasir::io {

// The tensors of one weight matrix by the last part of their names: {"weight", ..}, {"weight_scale", ..}.
using HfParameters = std::map<std::string, const SafetensorsTensor*, std::less<>>;

// Rows with their shape; the first axis varies fastest, as in GGUF.
struct FolderWeight {
  RowReaderPtr rows;
  std::vector<std::int64_t> shape;
};

// The part of config.json about it (quantization_config, or compression_config). The form of each weight is known by its
// parameters, so that a folder may mix quantised weights and others. Immutable.
class HfQuantization {
 public:
  // None: every weight is stored as floats.
  HfQuantization() = default;
  // `floats`: how weights are given that become floats. Errors: kBadFile naming the method, when it is one that is not
  // read here.
  static Result<HfQuantization> read(const HfConfig& config, ComputedFloats floats = ComputedFloats::kRounded);

  // The rows of the weight called `module`. Errors: kBadFile naming the tensor and what about it does not fit.
  Result<FolderWeight> weight(std::string_view module, const HfParameters& parameters) const;

 private:
  Result<FolderWeight> float8(const HfParameters& parameters) const;
  Result<GroupedWeight> gptq(const HfParameters& parameters) const;
  FolderWeight grouped(GroupedWeight weight) const;

  std::string method_;               // empty: none
  std::int64_t bits_ = 4;            // of GPTQ
  bool zeros_are_less_one_ = false;  // GPTQ stores its zeros so, but in its second version
  std::int64_t block_rows_ = 128, block_columns_ = 128;  // of FP8 weights that share a scale
  ComputedFloats floats_ = ComputedFloats::kRounded;
};

// A tensor of floats as it is stored; its leading axes are rows. Errors: kBadFile: another type, no axis, more than
// four, or an axis without elements.
Result<FolderWeight> stored_floats(const SafetensorsTensor& tensor);

}  // namespace kvasir::io
