// Takes tensors out of a model file by name and shape, and notices tensors that were not taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "io/packed_copy.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "model/config.h"
#include "model/weight_footprint.h"

namespace kvasir::model {

// Fraction of the file's tensors that have been loaded, in [0, 1]. False asks the loader to give up.
using WeightProgress = std::function<bool(double fraction)>;

// A matrix of a layer, or the part of one that it was made of.
struct NamedMatrix {
  std::string name;  // of the tensor: "blk.0.attn_q.weight"
  const backend::Matrix* matrix = nullptr;
  std::int64_t first_row = 0;   // of the tensor's rows, the matrix's first
  std::int64_t total_rows = 0;  // of the tensor
};

// Errors are kBadFile and name the tensor, the expected and the actual shape; kCancelled when the progress
// asks for it. One use, one thread.
class WeightLoader {
 public:
  // `copy` (may be null): packed matrices are taken from it, or added to it. It must outlive the matrices.
  WeightLoader(const io::WeightSource& source, backend::Backend& backend, WeightProgress progress,
               io::PackedCopy* copy = nullptr);
  // Looks at names and shapes only: matrices come back empty.
  static WeightLoader dry(const io::WeightSource& source, backend::Backend& backend);
  bool is_dry() const { return is_dry_; }
  // A dry one that goes on where a tensor is missing or misshapen: faults() has every such tensor, and those that
  // nobody asked for.
  static WeightLoader inspecting(const io::WeightSource& source, backend::Backend& backend);
  const std::vector<Error>& faults() const { return faults_; }

  // A weight matrix of num_rows outputs and row_length inputs, packed for the backend. Where the file has a factor for
  // it, or one for each expert, tensor NAME.scale beside NAME.weight, the matrix has it too.
  Result<std::unique_ptr<backend::Matrix>> matrix(const std::string& name, std::int64_t num_rows,
                                                  std::int64_t row_length,
                                                  backend::MatrixUse use = backend::MatrixUse::kLayer);
  // Outputs [first_row, first_row + num_rows) of a tensor of total_rows, as a matrix of their own: what several
  // matrices are written in one behind the other.
  Result<std::unique_ptr<backend::Matrix>> matrix_part(const std::string& name, std::int64_t first_row,
                                                       std::int64_t num_rows, std::int64_t total_rows,
                                                       std::int64_t row_length);
  // Tensors of num_rows outputs each and of one type as one matrix, in their order. num_rows must be a
  // multiple of backend::kRowsPerGroup.
  Result<std::unique_ptr<backend::Matrix>> stacked_matrix(const std::vector<std::string>& names,
                                                          std::int64_t num_rows, std::int64_t row_length,
                                                          backend::MatrixUse use);
  // A table of num_rows rows widened to float32, row after row.
  Result<std::vector<float>> table(const std::string& name, std::int64_t num_rows, std::int64_t row_length);
  // A vector widened to float32.
  Result<std::vector<float>> vector(const std::string& name, std::int64_t length);
  // Empty when the file has none.
  Result<std::vector<float>> optional_vector(const std::string& name, std::int64_t length);
  // The tensor itself, for row look-ups in its file layout.
  Result<const TensorView*> view(const std::string& name, std::int64_t num_rows, std::int64_t row_length);
  bool has(std::string_view name) const { return source_.find(name) != nullptr; }
  // 0 when the file has none.
  std::int64_t num_rows(std::string_view name) const {
    const TensorView* tensor = source_.find(name);
    return tensor == nullptr ? 0 : tensor->num_rows();
  }
  const io::Metadata& metadata() const { return source_.metadata(); }

  // Error naming the first tensor that the architecture did not ask for: computing without it would be wrong.
  // Those that is_left_out() knows may stay. Likewise an optional vector that one layer lacks and another has.
  Status check_all_used(const ModelConfig& config);
  // Says that a dense layer is gated, for the footprint.
  void count_gates() { footprint_.has_gates = true; }

  // Matrices of attention and dense feed-forward layers that were made so far.
  std::vector<NamedMatrix> take_layer_matrices() { return std::move(layer_matrices_); }

  std::int64_t packed_bytes() const { return footprint_.packed_bytes; }
  const WeightFootprint& footprint() const { return footprint_; }

 private:
  Status check_layers_alike() const;
  // The tensor, once its shape is right.
  Result<const TensorView*> find(const std::string& name, std::int64_t num_rows, std::int64_t row_length);
  // Notes the fault of a tensor and gives one of zeros in its place, where that is wanted.
  Result<const TensorView*> stand_in(Error fault, const std::string& name, std::int64_t num_rows, std::int64_t row_length);
  Status mark_used(const std::string& name);
  // Rows of a tensor, or the tensors of several experts, as a matrix.
  struct Part {
    const std::string& name;  // of the first tensor
    TensorView shape;         // of the matrix; its data are not read
    std::int64_t first_row = 0;
    backend::MatrixUse use = backend::MatrixUse::kLayer;
  };
  // Counts the matrix. Then the packed copy's, or a new one that `fill` packs.
  Result<std::unique_ptr<backend::Matrix>> make(const Part& part,
                                                const std::function<Status(backend::Matrix&)>& fill);
  Status count(const Part& part);
  // Null where the copy has none that fits.
  std::unique_ptr<backend::Matrix> adopt(const Part& part, const std::string& key);
  // The factors of a matrix's products; empty where the file has none.
  Result<std::vector<float>> scales_of(const TensorView& tensor, backend::MatrixUse use);
  // Rows [first_row, first_row + num_rows) of a tensor as a matrix.
  Result<std::unique_ptr<backend::Matrix>> pack(const TensorView& tensor, std::int64_t first_row,
                                                std::int64_t num_rows, backend::MatrixUse use,
                                                bool is_checked);
  // The same as the rows from target_row of a matrix.
  Status pack_at(const TensorView& tensor, std::int64_t first_row, std::int64_t num_rows, bool is_checked,
                 std::int64_t target_row, backend::Matrix& matrix);

  const io::WeightSource& source_;
  backend::Backend& backend_;
  WeightProgress progress_;
  std::set<std::string, std::less<>> used_;
  bool inspects_ = false;
  std::vector<Error> faults_;
  struct StandIn {
    TensorView view;
    std::vector<float> zeros;
  };
  std::vector<std::unique_ptr<StandIn>> stand_ins_;
  std::vector<std::string> absent_;  // optional vectors that the file does not have
  std::vector<std::byte> scratch_;  // rows that the source computes
  io::PackedCopy* copy_ = nullptr;
  WeightFootprint footprint_;
  void note(const std::string& name, const backend::Matrix& matrix, std::int64_t first_row, std::int64_t total_rows);
  std::vector<NamedMatrix> layer_matrices_;
  bool is_dry_ = false;
};

}  // namespace kvasir::model
