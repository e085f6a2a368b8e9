#include "compress/input_statistics.h"

#include <algorithm>
#include <utility>

namespace kvasir::compress {

InputStatistics::Input& InputStatistics::input_for(std::span<const std::string_view> names, std::int64_t width) {
  if (const auto found = by_tensor_.find(names.front()); found != by_tensor_.end()) {
    return *inputs_[static_cast<std::size_t>(found->second)];
  }
  auto input = std::make_unique<Input>();
  input->squares.resize(static_cast<std::size_t>(width));
  bool wants_products = false;
  for (const std::string_view name : names) {
    input->tensors.emplace_back(name);
    by_tensor_[std::string(name)] = static_cast<std::int32_t>(inputs_.size());
    wants_products = wants_products || with_products_.contains(name);
  }
  if (wants_products) input->products = std::make_unique<GramMatrix>(width);
  inputs_.push_back(std::move(input));
  return *inputs_.back();
}

void InputStatistics::observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) {
  if (is_paused_) return;
  Input& input = input_for(names, width);
  const std::int64_t count = std::ssize(rows) / width;
  input.num_rows += count;
  if (input.products != nullptr) return input.products->add(rows, pool_);
  for (std::int64_t row = 0; row < count; ++row) {
    const float* x = rows.data() + row * width;
    for (std::int64_t i = 0; i < width; ++i) input.squares[static_cast<std::size_t>(i)] += double{x[i]} * x[i];
  }
}

void InputStatistics::observe_expert(std::string_view name, std::int32_t expert, std::int32_t num_experts, std::span<const float> rows,
                                     std::int64_t width) {
  if (is_paused_) return;
  Experts& experts = experts_[std::string(name)];
  experts.squares.resize(static_cast<std::size_t>(num_experts * width));
  experts.num_rows.resize(static_cast<std::size_t>(num_experts));
  double* const squares = experts.squares.data() + expert * width;
  for (std::size_t i = 0; i < rows.size(); ++i) squares[i % static_cast<std::size_t>(width)] += double{rows[i]} * rows[i];
  experts.num_rows[static_cast<std::size_t>(expert)] += std::ssize(rows) / width;
}

void InputStatistics::finish() {
  for (const auto& input : inputs_) {
    if (input->products == nullptr) continue;
    for (std::int64_t i = 0; i < input->products->width(); ++i) {
      input->squares[static_cast<std::size_t>(i)] = input->products->at(i, i);
    }
  }
}

void InputStatistics::divide_inputs(const std::map<std::string, std::vector<float>, std::less<>>& scales) {
  for (const auto& input : inputs_) {
    const auto found = scales.find(input->tensors.front());
    if (found == scales.end()) continue;
    for (std::size_t i = 0; i < input->squares.size(); ++i) input->squares[i] /= double{found->second[i]} * found->second[i];
    if (input->products != nullptr) input->products->divide_columns(found->second);
  }
}

std::int32_t InputStatistics::input_of(std::string_view tensor) const {
  const auto found = by_tensor_.find(tensor);
  return found == by_tensor_.end() ? -1 : found->second;
}

const GramMatrix* InputStatistics::products_of(std::string_view tensor) const {
  const std::int32_t input = input_of(tensor);
  return input < 0 ? nullptr : inputs_[static_cast<std::size_t>(input)]->products.get();
}

io::Imatrix InputStatistics::imatrix() const {
  io::Imatrix imatrix;
  for (const auto& input : inputs_) {
    std::vector<float> means;
    for (const double square : input->squares) means.push_back(static_cast<float>(square / static_cast<double>(std::max<std::int64_t>(1, input->num_rows))));
    for (const std::string& tensor : input->tensors) {
      imatrix.mean_squares[tensor] = means;
      imatrix.counts[tensor] = {static_cast<float>(input->num_rows)};
    }
  }
  add_experts(imatrix);
  return imatrix;
}

void InputStatistics::add_experts(io::Imatrix& imatrix) const {
  for (const auto& [name, experts] : experts_) {
    const std::size_t num_experts = experts.num_rows.size(), width = experts.squares.size() / num_experts;
    std::vector<double> of_all(width);
    std::int64_t num_rows = 0;
    for (std::size_t i = 0; i < experts.squares.size(); ++i) of_all[i % width] += experts.squares[i];
    for (const std::int64_t count : experts.num_rows) num_rows += count;
    std::vector<float>& means = imatrix.mean_squares[name];
    std::vector<float>& counts = imatrix.counts[name];
    for (std::size_t expert = 0; expert < num_experts; ++expert) {
      const std::int64_t count = experts.num_rows[expert];
      const bool is_rare = count < kFewestRowsOfExpert;
      for (std::size_t i = 0; i < width; ++i) {
        means.push_back(static_cast<float>(is_rare ? of_all[i] / static_cast<double>(num_rows)
                                                   : experts.squares[expert * width + i] / static_cast<double>(count)));
      }
      counts.push_back(static_cast<float>(std::max<std::int64_t>(1, count)));
    }
  }
}

}  // namespace kvasir::compress
