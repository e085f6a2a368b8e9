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

  // The rest of the file is known when the tensors' types are: the budget gives way until the whole fits.
  Result<BudgetedTypes> choose(const BudgetSize& size) const {
    std::vector<std::vector<compress::TypeOption>> options;
    std::int64_t least_bytes = 0;
    for (const FreeTensor& tensor : tensors_) {
      options.push_back(tensor.options);
      least_bytes += std::ranges::min_element(tensor.options, {}, &compress::TypeOption::num_bytes)->num_bytes;
    }
    KVASIR_TRY(const std::int64_t wanted_bytes, bytes_of(size));
    std::int64_t budget_bytes = wanted_bytes;
    while (true) {
      const auto choice = compress::choose_within(options, budget_bytes);
      if (!choice) {
        const std::int64_t missing_bytes = least_bytes - budget_bytes;
        return make_error(ErrorKind::kUsage, fmt::format("{}: the model takes {} more at least", size.file_bytes ? "bytes" : "bpw", format_bytes(missing_bytes)),
                          size.file_bytes ? "bytes" : "bpw");
      }
      BudgetedTypes chosen;
      for (std::size_t i = 0; i < tensors_.size(); ++i) {
        const compress::TypeOption& option = options[i][(*choice)[i]];
        chosen.types[tensors_[i].view.name] = option.type;
        chosen.predicted_kl += option.loss;
      }
      KVASIR_TRY(const std::int64_t taken_bytes, taken_by(chosen.types, size));
      if (taken_bytes <= wanted_bytes) return chosen;
      budget_bytes -= taken_bytes - wanted_bytes;
    }
  }

 private:
  // The size that was asked for, in what taken_by() counts.
  Result<std::int64_t> bytes_of(const BudgetSize& size) const {
    if (size.file_bytes) return *size.file_bytes;
    double elements = 0.0;
    for (const TensorView& tensor : input_.source.tensors()) elements += static_cast<double>(tensor.num_elements());
    return static_cast<std::int64_t>(size.bits_per_weight / 8.0 * elements);
  }

  // The bytes of the file with these types, or of its tensors where bits a weight were asked for.
  Result<std::int64_t> taken_by(const std::map<std::string, DType, std::less<>>& types, const BudgetSize& size) const {
    const compress::QuantizeOptions options{.type = "Q8_0", .types = types, .takes_quantized = true};
    KVASIR_TRY(const compress::QuantizePlan plan, compress::plan_quantization(input_.source, input_.entries, options, {}));
    if (size.file_bytes) return plan.num_bytes;
    std::int64_t bytes = 0;
    for (const compress::PlannedTensor& tensor : plan.tensors) bytes += tensor.num_bytes();
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

Result<BudgetedTypes> choose_budgeted_types(const BudgetInput& input, const BudgetSize& size, ThreadPool& pool,
                                            const GlobalOptions& globals, Interruption& interruption,
                                            const std::function<void(double)>& progress) {
  Budget budget(input, pool, globals, interruption);
  KVASIR_CHECKED(budget.measure_losses());
  KVASIR_CHECKED(budget.probe(progress));
  return budget.choose(size);
}

}  // namespace kvasir::cli
