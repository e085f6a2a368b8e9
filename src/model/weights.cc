#include "model/weights.h"

#include <fmt/format.h>

#include <utility>

#include "base/printable.h"
#include "io/finite_check.h"
#include "quant/format.h"

namespace kvasir::model {

WeightLoader::WeightLoader(const io::WeightSource& source, backend::Backend& backend, WeightProgress progress)
    : source_(source), backend_(backend), progress_(std::move(progress)) {}

void WeightLoader::mark_used(const std::string& name) {
  used_.insert(name);
  if (progress_) progress_(static_cast<double>(used_.size()) / static_cast<double>(source_.tensors().size()));
}

Result<const TensorView*> WeightLoader::view(const std::string& name, std::int64_t num_rows,
                                             std::int64_t row_length) {
  const TensorView* tensor = source_.find(name);
  if (tensor == nullptr) return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: missing", name));
  if (tensor->num_rows() != num_rows || tensor->row_length() != row_length) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tensor {}: must be {} x {}, is {} x {}", name, num_rows, row_length,
                                  tensor->num_rows(), tensor->row_length()));
  }
  if (!used_.contains(name)) KVASIR_CHECKED(io::check_finite(*tensor));
  mark_used(name);
  return tensor;
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::matrix(const std::string& name, std::int64_t num_rows,
                                                              std::int64_t row_length) {
  KVASIR_TRY(const TensorView* tensor, view(name, num_rows, row_length));
  KVASIR_TRY(auto matrix, backend_.load_matrix(*tensor));
  packed_bytes_ += matrix->packed_bytes;
  source_.release_pages(*tensor);
  return matrix;
}

Result<std::vector<float>> WeightLoader::vector(const std::string& name, std::int64_t length) {
  KVASIR_TRY(const TensorView* tensor, view(name, 1, length));
  std::vector<float> out(static_cast<std::size_t>(length));
  quant::unpack_row_of(tensor->dtype)(tensor->data, length, out.data());
  return out;
}

Result<std::vector<float>> WeightLoader::optional_vector(const std::string& name, std::int64_t length) {
  if (!has(name)) return std::vector<float>();
  return vector(name, length);
}

Status WeightLoader::check_all_used() const {
  for (const TensorView& tensor : source_.tensors()) {
    if (!used_.contains(tensor.name)) {
      return make_error(
          ErrorKind::kBadFile,
          fmt::format("tensor {}: not part of this architecture as Kvasir knows it ({} of {} tensors used)",
                      printable(tensor.name), used_.size(), source_.tensors().size()));
    }
  }
  return {};
}

}  // namespace kvasir::model
