// Where a model's tensors come from, whatever the file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/metadata.h"
#include "kvasir/result.h"
#include "tensor/tensor_view.h"

namespace kvasir::io {

// A tensor of a type that no kernel reads: what the file says about it.
struct UnsupportedTensor {
  std::string name;
  std::uint32_t type_number = 0;
  std::string type;                 // as ggml calls it; "type 99" when it is not known
  std::vector<std::int64_t> shape;  // the first varies fastest
  std::int64_t num_elements = 0;
  std::int64_t num_bytes = 0;  // 0: not known
};

// A model file (or a set of split files) opened for reading. Every TensorView it hands out has been
// checked to lie inside the file. Thread safety: const members may be called from any thread.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const Metadata& metadata() const = 0;
  virtual std::span<const TensorView> tensors() const = 0;
  // Null when there is no tensor of that name.
  virtual const TensorView* find(std::string_view name) const = 0;
  // Rows [begin, end) of one of tensors() as a tensor of their own. They point into the file where it holds them as
  // they are; where they must be computed (a folder's stacked experts, quantised weights) the tensor's own data is
  // null, and they are written into `scratch`.
  virtual TensorView rows(const TensorView& tensor, std::int64_t begin, std::int64_t end,
                          std::vector<std::byte>& scratch) const {
    (void)scratch;
    return tensor.rows(begin, end);
  }
  // Tells the system that these bytes of the file will not be read again soon (after packing); the view stays valid.
  virtual void release_pages(const TensorView& tensor) const = 0;
  // The same of what rows [begin, end) of one of tensors() are made of.
  virtual void release_rows(const TensorView& tensor, std::int64_t begin, std::int64_t end) const {
    release_pages(tensor.rows(begin, end));
  }
  virtual std::string_view description() const = 0;  // the path, for messages
  // Tensors that tensors() leaves out; none unless the file was opened to be described.
  virtual std::span<const UnsupportedTensor> unsupported() const { return {}; }
  // Why the model does not run, where not even its configuration or its tensors' names can be read as an architecture's;
  // none unless the file was opened to be described.
  virtual std::span<const std::string> faults() const { return {}; }
  // Names of tensors that text needs not, such as those of an image encoder: tensors() does not have them.
  virtual std::span<const std::string> left_out() const { return {}; }
};

enum class TensorTypes : std::uint8_t {
  kSupported,  // a tensor of any other type is an Error
  kAny,        // such tensors are listed by unsupported(): for those who only describe the file
};

// Opens a GGUF file (v2, v3; the first of a split set opens them all) through mmap.
// Errors: kBadFile naming section, limit and value; kMachine when the file may not be read.
Result<std::unique_ptr<WeightSource>> open_gguf(const std::string& path,
                                                TensorTypes types = TensorTypes::kSupported);

}  // namespace kvasir::io
