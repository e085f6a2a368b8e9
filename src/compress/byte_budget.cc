#include "compress/byte_budget.h"

#include <algorithm>

namespace kvasir::compress {
namespace {

using Choice = std::vector<std::size_t>;

// The option whose loss and price together are least; the smaller one of equals.
std::size_t best_at(const std::vector<TypeOption>& options, double price) {
  std::size_t best = 0;
  const auto cost = [&](const TypeOption& option) { return option.loss + price * static_cast<double>(option.num_bytes); };
  for (std::size_t i = 1; i < options.size(); ++i) {
    const double mine = cost(options[i]), least = cost(options[best]);
    if (mine < least || (mine == least && options[i].num_bytes < options[best].num_bytes)) best = i;
  }
  return best;
}

std::int64_t bytes_of(std::span<const std::vector<TypeOption>> tensors, const Choice& choice) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) bytes += tensors[i][choice[i]].num_bytes;
  return bytes;
}

Choice choose_at(std::span<const std::vector<TypeOption>> tensors, double price) {
  Choice choice;
  for (const std::vector<TypeOption>& options : tensors) choice.push_back(best_at(options, price));
  return choice;
}

Choice smallest(std::span<const std::vector<TypeOption>> tensors) {
  Choice choice;
  for (const std::vector<TypeOption>& options : tensors) {
    choice.push_back(static_cast<std::size_t>(std::ranges::min_element(options, {}, &TypeOption::num_bytes) - options.begin()));
  }
  return choice;
}

// Spends what is left, always on the upgrade that saves most a byte.
void upgrade(std::span<const std::vector<TypeOption>> tensors, std::int64_t left_bytes, Choice& choice) {
  while (true) {
    double best_rate = 0.0;
    std::size_t best_tensor = 0, best_option = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TypeOption& now = tensors[i][choice[i]];
      for (std::size_t k = 0; k < tensors[i].size(); ++k) {
        const std::int64_t more = tensors[i][k].num_bytes - now.num_bytes;
        const double saved = now.loss - tensors[i][k].loss;
        if (more <= 0 || more > left_bytes || saved <= 0.0) continue;
        if (const double rate = saved / static_cast<double>(more); rate > best_rate) {
          best_rate = rate;
          best_tensor = i;
          best_option = k;
        }
      }
    }
    if (best_rate == 0.0) return;
    left_bytes -= tensors[best_tensor][best_option].num_bytes - tensors[best_tensor][choice[best_tensor]].num_bytes;
    choice[best_tensor] = best_option;
  }
}

}  // namespace

std::optional<std::vector<std::size_t>> choose_within(std::span<const std::vector<TypeOption>> tensors,
                                                      std::int64_t budget_bytes) {
  Choice choice = smallest(tensors);
  if (bytes_of(tensors, choice) > budget_bytes) return std::nullopt;
  double low = 0.0, high = 1.0;  // prices at which too much and little enough is taken
  if (Choice best = choose_at(tensors, 0.0); bytes_of(tensors, best) <= budget_bytes) return best;
  while (bytes_of(tensors, choose_at(tensors, high)) > budget_bytes && high < 1e30) high *= 4.0;
  for (int i = 0; i < 200; ++i) {
    const double middle = low == 0.0 ? high * 1e-3 : (low + high) / 2.0;
    (bytes_of(tensors, choose_at(tensors, middle)) > budget_bytes ? low : high) = middle;
  }
  if (Choice found = choose_at(tensors, high); bytes_of(tensors, found) <= budget_bytes) choice = std::move(found);
  upgrade(tensors, budget_bytes - bytes_of(tensors, choice), choice);
  return choice;
}

}  // namespace kvasir::compress
