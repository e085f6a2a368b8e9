#include "cli/byte_budget_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/units.h"
#include "compress/byte_budget.h"
#include "compress/quantizer.h"
#include "compress/type_losses.h"

namespace kvasir::cli {
namespace {

constexpr DType kProbeType = DType::kQ4_0;
constexpr std::int64_t kPaddingBytes = 32;  // behind a tensor, at most

// A tensor whose type is free, and what it loses in each.
struct FreeTensor {
  TensorView view;
  std::string_view part;
  std::vector<compress::TypeOption> options;
};

const compress::TypeOption& option_of(const FreeTensor& tensor, DType wanted) {
  const DType type = compress::fitting(wanted, tensor.view.row_length()).type;
  const auto found = std::ranges::find(tensor.options, type, &compress::TypeOption::type);
  return found != tensor.options.end() ? *found : tensor.options.front();
}

class Budget {
 public:
  Budget(const BudgetInput& input, ThreadPool& pool, const GlobalOptions& globals, Interruption& interruption)
      : input_(input), pool_(pool), globals_(globals), interruption_(interruption),
        is_tied_(input.source.find("output.weight") == nullptr) {}

  Status measure_losses() {
    for (const TensorView& tensor : input_.source.tensors()) {
      if (!compress::is_quantized_by_recipes(tensor)) continue;
      std::span<const float> squares;
      if (input_.calibration.imatrix != nullptr) {
        const auto found = input_.calibration.imatrix->mean_squares.find(tensor.name);
        if (found != input_.calibration.imatrix->mean_squares.end()) squares = found->second;
      }
      KVASIR_TRY(auto options, compress::type_losses(input_.source, tensor, squares, pool_));
      tensors_.push_back({.view = tensor, .part = compress::part_of(tensor, is_tied_), .options = std::move(options)});
    }
    return {};
  }

  // KL for a unit of loss, by part.
  Status probe(const std::function<void(double)>& progress) {
    std::set<std::string_view> parts;
    for (const FreeTensor& tensor : tensors_) parts.insert(tensor.part);
    std::size_t num_done = 0;
    for (const std::string_view part : parts) {
      KVASIR_TRY(const double kl, kl_of(part));
      double loss = 0.0;
      for (const FreeTensor& tensor : tensors_) loss += tensor.part == part ? option_of(tensor, kProbeType).loss : 0.0;
      const double rate = loss > 0.0 ? std::max(kl, 1e-7) / loss : 0.0;
      for (FreeTensor& tensor : tensors_) {
        for (compress::TypeOption& option : tensor.options) option.loss *= tensor.part == part ? rate : 1.0;
      }
      progress(static_cast<double>(++num_done) / static_cast<double>(parts.size()));
    }
    return {};
  }

  Result<BudgetedTypes> choose(std::int64_t file_bytes) const {
    std::vector<std::vector<compress::TypeOption>> options;
    for (const FreeTensor& tensor : tensors_) options.push_back(tensor.options);
    KVASIR_TRY(const std::int64_t fixed_bytes, bytes_besides());
    const auto choice = compress::choose_within(options, file_bytes - fixed_bytes);
    if (!choice) {
      std::int64_t least_bytes = fixed_bytes;
      for (const auto& of_tensor : options) least_bytes += std::ranges::min_element(of_tensor, {}, &compress::TypeOption::num_bytes)->num_bytes;
      return make_error(ErrorKind::kUsage, fmt::format("bytes: the model takes {} at least, {} were asked for", format_bytes(least_bytes), format_bytes(file_bytes)), "bytes");
    }
    BudgetedTypes chosen;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const compress::TypeOption& option = options[i][(*choice)[i]];
      chosen.types[tensors_[i].view.name] = option.type;
      chosen.predicted_kl += option.loss;
    }
    return chosen;
  }

 private:
  // Of the file without the tensors whose types are free.
  Result<std::int64_t> bytes_besides() const {
    compress::QuantizeOptions options{.type = "Q8_0", .takes_quantized = true};
    KVASIR_TRY(const compress::QuantizePlan plan, compress::plan_quantization(input_.source, input_.entries, options, {}));
    std::int64_t bytes = plan.num_bytes + kPaddingBytes * static_cast<std::int64_t>(tensors_.size());
    for (const compress::PlannedTensor& tensor : plan.tensors) {
      const auto is_same = [&](const FreeTensor& free) { return free.view.name == tensor.source.name; };
      if (std::ranges::any_of(tensors_, is_same)) bytes -= tensor.num_bytes();
    }
    return bytes;
  }

  // With this part alone in kProbeType.
  Result<double> kl_of(std::string_view part) {
    compress::QuantizeOptions options{.type = "F32", .takes_quantized = true};
    for (const FreeTensor& tensor : tensors_) {
      options.types[tensor.view.name] = tensor.part == part ? option_of(tensor, kProbeType).type : tensor.view.dtype;
    }
    KVASIR_TRY(const compress::QuantizePlan plan,
               compress::plan_quantization(input_.source, input_.entries, options, {.imatrix = input_.calibration.imatrix}));
    const std::string path = input_.out + ".probe";
    const auto made = compress::quantize(input_.source, plan, {.imatrix = input_.calibration.imatrix}, "probe", path, pool_,
                                         [&](std::int64_t, std::int64_t) { return !interruption_.requested(); });
    if (!made) return std::unexpected(made.error());
    const auto divergence = input_.logits.compare(path, globals_, interruption_);
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    if (!divergence) return std::unexpected(divergence.error());
    return divergence->kl;
  }

  const BudgetInput& input_;
  ThreadPool& pool_;
  const GlobalOptions& globals_;
  Interruption& interruption_;
  const bool is_tied_;
  std::vector<FreeTensor> tensors_;
};

}  // namespace

Result<BudgetedTypes> choose_budgeted_types(const BudgetInput& input, std::int64_t file_bytes, ThreadPool& pool,
                                            const GlobalOptions& globals, Interruption& interruption,
                                            const std::function<void(double)>& progress) {
  Budget budget(input, pool, globals, interruption);
  KVASIR_CHECKED(budget.measure_losses());
  KVASIR_CHECKED(budget.probe(progress));
  return budget.choose(file_bytes);
}

}  // namespace kvasir::cli
