#include "model/weight_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "io/finite_check.h"
#include "model/left_out_tensors.h"
#include "quant/dtype.h"

namespace kvasir::model {
namespace {

// The part of the file that is in memory beside the packed weights. A few slices of this size stay in the
// caches between the check and the packing.
constexpr std::int64_t kSliceBytes = 8 << 20;

// Calls visit(row_begin, row_end) for slices of whole row groups of num_rows rows, in order, until one fails.
template <class Visit>
Status for_each_slice(const TensorView& tensor, std::int64_t num_rows, const Visit& visit) {
  constexpr std::int64_t kGroup = backend::kRowsPerGroup;
  const std::int64_t group_bytes = kGroup * row_bytes(tensor.dtype, tensor.row_length());
  const std::int64_t slice_rows = kGroup * std::max<std::int64_t>(1, kSliceBytes / group_bytes);
  for (std::int64_t begin = 0; begin < num_rows; begin += slice_rows) {
    KVASIR_CHECKED(visit(begin, std::min(begin + slice_rows, num_rows)));
  }
  return {};
}

// Rows of the tensor that begin with `begin`.
Status check(const TensorView& tensor, const TensorView& slice, std::int64_t begin) {
  if (tensor.data != nullptr) return io::check_finite(tensor, begin, begin + slice.num_rows());
  return io::check_finite(slice);
}

// "attn_q.bias" of "blk.3.attn_q.bias"; empty: the tensor is no layer's.
std::string_view part_of_layer(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  const std::size_t dot = name.find('.', kPrefix.size());
  return name.starts_with(kPrefix) && dot != name.npos ? name.substr(dot + 1) : std::string_view();
}

}  // namespace

WeightLoader::WeightLoader(const io::WeightSource& source, backend::Backend& backend, WeightProgress progress,
                           io::PackedCopy* copy)
    : source_(source), backend_(backend), progress_(std::move(progress)), copy_(copy) {}

WeightLoader WeightLoader::dry(const io::WeightSource& source, backend::Backend& backend) {
  WeightLoader loader(source, backend, {});
  loader.is_dry_ = true;
  return loader;
}

WeightLoader WeightLoader::inspecting(const io::WeightSource& source, backend::Backend& backend) {
  WeightLoader loader = dry(source, backend);
  loader.inspects_ = true;
  return loader;
}

Status WeightLoader::mark_used(const std::string& name) {
  used_.insert(name);
  const double fraction = static_cast<double>(used_.size()) / static_cast<double>(source_.tensors().size());
  if (!progress_ || progress_(fraction)) return {};
  return make_error(ErrorKind::kCancelled, "loading was stopped");
}

Result<const TensorView*> WeightLoader::find(const std::string& name, std::int64_t num_rows, std::int64_t row_length) {
  const TensorView* tensor = source_.find(name);
  if (tensor == nullptr) {
    return stand_in({.kind = ErrorKind::kBadFile, .message = fmt::format("tensor {}: missing", name)}, name, num_rows,
                    row_length);
  }
  if (tensor->num_rows() != num_rows || tensor->row_length() != row_length) {
    return stand_in({.kind = ErrorKind::kBadFile,
                     .message = fmt::format("tensor {}: must be {} x {}, is {} x {}", name, num_rows, row_length,
                                            tensor->num_rows(), tensor->row_length())},
                    name, num_rows, row_length);
  }
  return tensor;
}

Result<const TensorView*> WeightLoader::stand_in(Error fault, const std::string& name, std::int64_t num_rows,
                                                 std::int64_t row_length) {
  constexpr std::int64_t kMostFloats = 1 << 24;  // of vectors and tables, which are read; matrices are not
  if (!inspects_ || num_rows * row_length > kMostFloats) return std::unexpected(std::move(fault));
  faults_.push_back(std::move(fault));
  auto made = std::make_unique<StandIn>();
  made->zeros.resize(static_cast<std::size_t>(num_rows * row_length));
  made->view = {.name = name,
                .rank = 2,
                .shape = {row_length, num_rows, 1, 1},
                .data = reinterpret_cast<const std::byte*>(made->zeros.data())};
  stand_ins_.push_back(std::move(made));
  return &stand_ins_.back()->view;
}

Result<const TensorView*> WeightLoader::view(const std::string& name, std::int64_t num_rows,
                                             std::int64_t row_length) {
  KVASIR_TRY(const TensorView* tensor, find(name, num_rows, row_length));
  if (tensor->data == nullptr) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("tensor {}: is stored in a form in which rows cannot be looked up", name));
  }
  if (!used_.contains(name)) footprint_.mapped_bytes += tensor->num_bytes();
  // Weights with a packed copy were checked when it was made.
  const bool is_known = copy_ != nullptr && copy_->is_hit();
  if (!is_dry_ && !is_known && !used_.contains(name)) {
    const auto check = [&](std::int64_t begin, std::int64_t end) -> Status {
      KVASIR_CHECKED(io::check_finite(*tensor, begin, end));
      source_.release_rows(*tensor, begin, end);
      return {};
    };
    KVASIR_CHECKED(for_each_slice(*tensor, num_rows, check));
  }
  KVASIR_CHECKED(mark_used(name));
  return tensor;
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::matrix(const std::string& name, std::int64_t num_rows,
                                                              std::int64_t row_length,
                                                              backend::MatrixUse use) {
  KVASIR_TRY(const TensorView* tensor, find(name, num_rows, row_length));
  KVASIR_TRY(std::vector<float> scales, scales_of(*tensor, use));
  KVASIR_TRY(auto matrix, pack(*tensor, 0, num_rows, use, used_.contains(name)));
  KVASIR_CHECKED(mark_used(name));
  matrix->scales = std::move(scales);
  if (use == backend::MatrixUse::kLayer) note(name, *matrix, 0, num_rows);
  return matrix;
}

// One that an adapter may change.
void WeightLoader::note(const std::string& name, const backend::Matrix& matrix, std::int64_t first_row,
                        std::int64_t total_rows) {
  static constexpr std::array kNames = std::to_array<std::string_view>(
      {"attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate", "ffn_up", "ffn_down"});
  const std::size_t layer_end = name.find('.', std::string_view("blk.").size());
  if (!name.starts_with("blk.") || !name.ends_with(".weight") || layer_end == name.npos) return;
  const std::string_view part = std::string_view(name).substr(layer_end + 1, name.rfind('.') - layer_end - 1);
  if (std::ranges::find(kNames, part) == kNames.end()) return;
  layer_matrices_.push_back({.name = name, .matrix = &matrix, .first_row = first_row, .total_rows = total_rows});
}

Result<std::vector<float>> WeightLoader::scales_of(const TensorView& tensor, backend::MatrixUse use) {
  constexpr std::string_view kWeight = ".weight";
  if (!tensor.name.ends_with(kWeight)) return std::vector<float>();
  const std::string name = tensor.name.substr(0, tensor.name.size() - kWeight.size()) + ".scale";
  const std::int64_t count = use == backend::MatrixUse::kExperts ? tensor.shape[2] : 1;
  const TensorView* scale = source_.find(name);
  // One of another size means something else.
  if (scale == nullptr || scale->num_elements() != count) return std::vector<float>();
  return vector(name, count);
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::matrix_part(const std::string& name,
                                                                   std::int64_t first_row,
                                                                   std::int64_t num_rows,
                                                                   std::int64_t total_rows,
                                                                   std::int64_t row_length) {
  KVASIR_TRY(const TensorView* tensor, find(name, total_rows, row_length));
  KVASIR_TRY(std::vector<float> scales, scales_of(*tensor, backend::MatrixUse::kLayer));
  KVASIR_CHECKED(mark_used(name));
  KVASIR_TRY(auto matrix, pack(*tensor, first_row, num_rows, backend::MatrixUse::kLayer, false));
  matrix->scales = std::move(scales);
  note(name, *matrix, first_row, total_rows);
  return matrix;
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::pack(const TensorView& tensor, std::int64_t first_row,
                                                            std::int64_t num_rows, backend::MatrixUse use,
                                                            bool is_checked) {
  const Part part{.name = tensor.name,
                  .shape = {.name = tensor.name,
                            .dtype = tensor.dtype,
                            .rank = 2,
                            .shape = {tensor.row_length(), num_rows, 1, 1}},
                  .first_row = first_row,
                  .use = use};
  return make(part, [&](backend::Matrix& matrix) {
    return pack_at(tensor, first_row, num_rows, is_checked, 0, matrix);
  });
}

Status WeightLoader::count(const Part& part) {
  KVASIR_TRY(const backend::PackedSize size, backend_.packed_size(part.shape, part.use));
  const std::int64_t products = part.shape.num_elements();
  footprint_.packed_bytes += size.num_bytes;
  footprint_.skipped_bytes += size.skipped_bytes;
  if (size.reads_floats) footprint_.float_products += products;
  const bool is_layer = part.name.starts_with("blk.");
  (part.use == backend::MatrixUse::kExperts ? footprint_.expert_products
   : is_layer                               ? footprint_.layer_products
                                            : footprint_.head_products) += products;
  if (part.use == backend::MatrixUse::kExperts) footprint_.expert_bytes += size.num_bytes;
  return {};
}

std::unique_ptr<backend::Matrix> WeightLoader::adopt(const Part& part, const std::string& key) {
  const std::span<const std::byte> packed = copy_->find(key);
  if (packed.empty()) {
    copy_->reject(fmt::format("lacks the weights {}", printable(key)));
    return nullptr;
  }
  auto matrix = backend_.adopt_matrix(part.shape, part.use, packed);
  if (matrix) return std::move(*matrix);
  copy_->reject(matrix.error().message);
  return nullptr;
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::make(
    const Part& part, const std::function<Status(backend::Matrix&)>& fill) {
  KVASIR_CHECKED(count(part));
  if (is_dry_) return std::make_unique<backend::Matrix>();
  const TensorView& shape = part.shape;
  const std::string key = fmt::format("{} {}+{}x{} {} {}", part.name, part.first_row, shape.num_rows(),
                                      shape.row_length(), name_of(shape.dtype), static_cast<int>(part.use));
  if (copy_ != nullptr && copy_->is_hit()) {
    if (auto matrix = adopt(part, key)) return matrix;
  }
  KVASIR_TRY(auto matrix, backend_.make_matrix(shape, part.use));
  KVASIR_CHECKED(fill(*matrix));
  if (copy_ != nullptr) copy_->add(key, backend_.host_bytes(*matrix));
  return matrix;
}

Status WeightLoader::pack_at(const TensorView& tensor, std::int64_t first_row, std::int64_t num_rows,
                             bool is_checked, std::int64_t target_row, backend::Matrix& matrix) {
  return for_each_slice(tensor, num_rows, [&](std::int64_t begin, std::int64_t end) -> Status {
    const TensorView slice = source_.rows(tensor, first_row + begin, first_row + end, scratch_);
    if (!is_checked) KVASIR_CHECKED(check(tensor, slice, first_row + begin));
    backend_.pack_rows(slice, target_row + begin, matrix);
    source_.release_rows(tensor, first_row + begin, first_row + end);
    return {};
  });
}

Result<std::unique_ptr<backend::Matrix>> WeightLoader::stacked_matrix(const std::vector<std::string>& names,
                                                                      std::int64_t num_rows,
                                                                      std::int64_t row_length,
                                                                      backend::MatrixUse use) {
  KVASIR_TRY(const TensorView* first, find(names.front(), num_rows, row_length));
  std::vector<const TensorView*> tensors;
  for (const std::string& name : names) {
    KVASIR_TRY(const TensorView* tensor, find(name, num_rows, row_length));
    if (tensor->dtype != first->dtype) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("tensor {}: must have the type of {}, {}, is {}", name, names.front(),
                                    name_of(first->dtype), name_of(tensor->dtype)));
    }
    tensors.push_back(tensor);
    KVASIR_CHECKED(mark_used(name));
  }
  const Part whole{.name = first->name,
                   .shape = {.name = first->name,
                             .dtype = first->dtype,
                             .rank = 2,
                             .shape = {row_length, std::ssize(names) * num_rows, 1, 1}},
                   .use = use};
  return make(whole, [&](backend::Matrix& matrix) -> Status {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::int64_t target_row = static_cast<std::int64_t>(i) * num_rows;
      KVASIR_CHECKED(pack_at(*tensors[i], 0, num_rows, false, target_row, matrix));
    }
    return {};
  });
}

Result<std::vector<float>> WeightLoader::table(const std::string& name, std::int64_t num_rows,
                                               std::int64_t row_length) {
  KVASIR_TRY(const TensorView* tensor, find(name, num_rows, row_length));
  footprint_.table_bytes += 4 * num_rows * row_length;
  std::vector<float> out(static_cast<std::size_t>(num_rows * row_length));
  for (std::int64_t i = 0; i < num_rows && !is_dry_; ++i) {
    const TensorView row = source_.rows(*tensor, i, i + 1, scratch_);
    KVASIR_CHECKED(io::check_finite(row));
    info_of(row.dtype).unpack_row(row.data, row_length, out.data() + i * row_length);
  }
  KVASIR_CHECKED(mark_used(name));
  return out;
}

Result<std::vector<float>> WeightLoader::vector(const std::string& name, std::int64_t length) {
  KVASIR_TRY(const TensorView* tensor, find(name, 1, length));
  std::vector<float> out(static_cast<std::size_t>(length));
  footprint_.table_bytes += 4 * length;
  if (!is_dry_) {
    const TensorView row = source_.rows(*tensor, 0, 1, scratch_);
    KVASIR_CHECKED(io::check_finite(row));
    info_of(row.dtype).unpack_row(row.data, length, out.data());
  }
  KVASIR_CHECKED(mark_used(name));
  return out;
}

Result<std::vector<float>> WeightLoader::optional_vector(const std::string& name, std::int64_t length) {
  if (has(name)) return vector(name, length);
  absent_.push_back(name);
  return std::vector<float>();
}

Status WeightLoader::check_layers_alike() const {
  std::map<std::string_view, std::string_view> by_part;
  for (const std::string& name : used_) by_part.emplace(part_of_layer(name), name);
  for (const std::string& name : absent_) {
    const auto other = by_part.find(part_of_layer(name));
    if (part_of_layer(name).empty() || other == by_part.end()) continue;
    return make_error(ErrorKind::kBadFile, fmt::format("tensor {}: missing, and another layer has {}", name,
                                                       printable(std::string(other->second))));
  }
  return {};
}

Status WeightLoader::check_all_used(const ModelConfig& config) {
  KVASIR_CHECKED(check_layers_alike());
  for (const TensorView& tensor : source_.tensors()) {
    if (used_.contains(tensor.name) || is_left_out(tensor.name, config)) continue;
    Error fault{.kind = ErrorKind::kBadFile,
                .message = fmt::format("tensor {}: not part of this architecture as Kvasir knows it ({} of {} tensors used)",
                                       printable(tensor.name), used_.size(), source_.tensors().size())};
    if (!inspects_) return std::unexpected(std::move(fault));
    faults_.push_back(std::move(fault));
  }
  return {};
}

}  // namespace kvasir::model
