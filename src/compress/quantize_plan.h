// What a quantised file will hold, before any of it is made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compress/input_statistics.h"
#include "compress/recipe.h"
#include "io/gguf_entries.h"
#include "io/imatrix_file.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::compress {

enum class Method : std::uint8_t {
  kCopy,     // the tensor's bytes
  kRtn,      // nearest codes, all numbers alike
  kImatrix,  // the same, errors weighted by the importance of inputs
  kGptq,     // codes whose errors correct each other (gptq.h)
};
std::string_view name_of(Method method);

struct QuantizeOptions {
  std::string type;                   // a recipe
  std::vector<std::string> keep;      // "REGEX=TYPE": tensors whose names match have this type; the first that does counts
  std::map<std::string, DType, std::less<>> types = {};  // by tensor, instead of the recipe's
  bool widens_small = false;          // tensors that recipes keep become F32, as GGUF files have them
  bool takes_quantized = false;       // a tensor in blocks may be read as the numbers that it stands for
  bool is_strict = false;             // fallbacks that change the file by more than 2% are an error
  bool expects_importance = false;    // it will be there when the file is made: recipes depend on it
};

// What is known of the model's inputs. Both are borrowed, and null where they are not there.
struct Calibration {
  const io::Imatrix* imatrix = nullptr;
  const InputStatistics* statistics = nullptr;
};

// Whether codes of the type may correct each other: not those that are rounded as the reference does it.
bool is_correctable(DType type);

struct PlannedTensor {
  TensorView source;
  TypeChoice choice;
  Method method = Method::kCopy;

  std::int64_t num_bytes() const { return source.num_rows() * row_bytes(choice.type, source.row_length()); }
};

struct QuantizePlan {
  Recipe recipe;
  std::vector<PlannedTensor> tensors;
  std::vector<io::GgufEntry> entries;
  std::vector<std::string> warnings;
  std::int64_t num_elements = 0;
  std::int64_t num_bytes = 0;   // of the file
  std::int32_t num_fallbacks = 0;
  std::int64_t fallback_bytes = 0;  // more than without fallbacks

  double bits_per_weight() const;
  std::vector<TensorView> views() const;  // as they will be in the file
};

// `entries`: of the source. Tensors whose inputs' products are known get kGptq, those with importance kImatrix. Errors: kUsage (a type or a regular expression that is
// none, blocks without takes_quantized, fallbacks with is_strict), kBadFile (metadata, importance of another shape).
Result<QuantizePlan> plan_quantization(const io::WeightSource& source, std::vector<io::GgufEntry> entries,
                                       const QuantizeOptions& options, const Calibration& calibration);

}  // namespace kvasir::compress
