// What the matrices of a model are multiplied by, summed up while it reads a text.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "base/thread_pool.h"
#include "compress/gram_matrix.h"
#include "io/imatrix_file.h"

namespace kvasir::compress {

// Sums by input; matrices that share an input share its sums. Thread safety: none (the engine's thread observes).
class InputStatistics final : public backend::InputObserver {
 public:
  // `with_products`: tensors whose inputs' products are summed too, and not their squares alone.
  InputStatistics(std::set<std::string, std::less<>> with_products, ThreadPool& pool)
      : with_products_(std::move(with_products)), pool_(pool) {}

  void observe(std::span<const std::string_view> names, std::span<const float> rows, std::int64_t width) override;
  void observe_expert(std::string_view name, std::int32_t expert, std::int32_t num_experts, std::span<const float> rows,
                      std::int64_t width) override;
  bool wants_logits() const override { return is_paused_; }
  // Between these two nothing is added, and the model may be asked for its logits.
  void pause() { is_paused_ = true; }
  void go_on() { is_paused_ = false; }
  // After the last row.
  void finish();

  // As if the inputs of these tensors had been divided by scales, one for each column. Tensors that share an input have the same.
  void divide_inputs(const std::map<std::string, std::vector<float>, std::less<>>& scales);

  // Null where the tensor's input was not observed, or its products are not summed.
  const GramMatrix* products_of(std::string_view tensor) const;
  // Tensors with the same number share their input; -1: not observed.
  std::int32_t input_of(std::string_view tensor) const;
  // Mean squares of all inputs. An expert that fewer than kFewestRowsOfExpert rows met has those of all experts together.
  static constexpr std::int64_t kFewestRowsOfExpert = 1000;
  io::Imatrix imatrix() const;

 private:
  struct Input {
    std::vector<std::string> tensors;
    std::vector<double> squares;
    std::int64_t num_rows = 0;
    std::unique_ptr<GramMatrix> products;
  };
  struct Experts {
    std::vector<double> squares;         // [experts, width]
    std::vector<std::int64_t> num_rows;  // by expert
  };
  void add_experts(io::Imatrix& imatrix) const;
  Input& input_for(std::span<const std::string_view> names, std::int64_t width);

  std::set<std::string, std::less<>> with_products_;
  ThreadPool& pool_;
  std::atomic<bool> is_paused_{false};
  std::vector<std::unique_ptr<Input>> inputs_;
  std::map<std::string, std::int32_t, std::less<>> by_tensor_;
  std::map<std::string, Experts, std::less<>> experts_;  // by tensor
};

}  // namespace kvasir::compress
