// A mixture's ops against dense matmuls of each expert, bit for bit, on every instruction set.
#include "backend/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "kernels/every_isa.h"
#include "kernels/random_weights.h"

namespace kvasir::backend::experts_test {
namespace {

constexpr std::int32_t kMaxRows = 256;

struct Shape {
  DType dtype;
  std::int32_t num_experts, num_used, hidden_size, intermediate_size;
};

constexpr Shape kShapes[] = {
    {DType::kF32, 4, 2, 48, 80},     // no width that is quantised
    {DType::kBF16, 8, 3, 64, 96},    //
    {DType::kQ8_0, 16, 4, 64, 96},   //
    {DType::kQ4_K, 3, 2, 256, 256},  // from 64 rows an expert on in panels
    {DType::kQ6_K, 4, 1, 256, 256},  //
};

std::vector<float> random_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  for (std::size_t i = 7; i < values.size(); i += 97) values[i] *= 20.0f;
  return values;
}

// A backend, and the weights of one mixture, both as its op takes them and expert by expert.
class Mixture {
 public:
  Mixture(const kernels::KernelTable& table, int num_threads, Precision precision, const Shape& shape,
          bool has_bias)
      : shape_(shape), pool_(num_threads), backend_(table, pool_, precision) {
    const std::int64_t hidden = shape.hidden_size, width = shape.intermediate_size, n = shape.num_experts;
    gate_ = kernels::random_weights(shape.dtype, n * width, hidden, 0.03f, 1);
    up_ = kernels::random_weights(shape.dtype, n * width, hidden, 0.03f, 2);
    down_ = kernels::random_weights(shape.dtype, n * hidden, width, 0.03f, 3);
    packed_gate_ = pack(gate_, 0, n * width, MatrixUse::kExperts);
    packed_up_ = pack(up_, 0, n * width, MatrixUse::kExperts);
    packed_down_ = pack(down_, 0, n * hidden, MatrixUse::kExperts);
    pack_gate_and_up();
    if (has_bias) {
      gate_bias_ = random_floats(n * width, 4);
      up_bias_ = random_floats(n * width, 5);
      down_bias_ = random_floats(n * hidden, 6);
    }
    for (std::int64_t e = 0; e < n; ++e) {
      dense_.push_back({pack(gate_, e * width, width, MatrixUse::kLayer),
                        pack(up_, e * width, width, MatrixUse::kLayer),
                        pack(down_, e * hidden, hidden, MatrixUse::kLayer)});
    }
    in_ = *backend_.make_activation(kMaxRows, shape.hidden_size);
    ff_ = *backend_.make_activation(kMaxRows, shape.intermediate_size);
    experts_ = *backend_.make_expert_rows({.max_rows = kMaxRows,
                                           .num_experts = shape.num_experts,
                                           .num_used = shape.num_used,
                                           .hidden_size = shape.hidden_size,
                                           .intermediate_size = shape.intermediate_size});
    norm_.assign(static_cast<std::size_t>(hidden), 1.0f);
  }

  Norm norm() const { return {.kind = NormKind::kRms, .weight = norm_, .eps = 1e-6f}; }
  RoutingRule rule() const {
    return {.num_experts = shape_.num_experts, .num_used = shape_.num_used, .renormalizes = true};
  }

  // out + scale * the mixture of x. `x` [rows, hidden], `logits` [rows, experts], `out` [rows, hidden].
  std::vector<float> run(std::vector<float> x, std::vector<float> logits, std::vector<float> out,
                         float scale = 1.0f, bool is_fused = false, bool replaces = false) {
    plan(static_cast<std::int32_t>(x.size()) / shape_.hidden_size);
    backend_.norm(rows_of(x, shape_.hidden_size), norm(), *in_);
    backend_.route({.logits = rows_of(logits, shape_.num_experts), .rule = rule()}, *experts_);
    ExpertMlpOp op{.gate = {packed_gate_.get(), data_or_null(gate_bias_)},
                   .up = {packed_up_.get(), data_or_null(up_bias_)},
                   .down = {packed_down_.get(), data_or_null(down_bias_)},
                   .activation = Gate::kSilu,
                   .scale = scale,
                   .replaces = replaces};
    if (is_fused) {
      op.gate = {packed_gate_and_up_.get(), data_or_null(gate_and_up_bias_)};
      op.up = {};
    }
    backend_.add_experts(op, *in_, *experts_, rows_of(out, shape_.hidden_size));
    return out;
  }

  // The same for one row, by the dense layers of its experts.
  std::vector<float> run_dense(std::vector<float> x, const std::vector<float>& logits, std::vector<float> out,
                               float scale) {
    plan(1);
    backend_.norm(rows_of(x, shape_.hidden_size), norm(), *in_);
    const auto num_used = static_cast<std::size_t>(shape_.num_used);
    std::vector<std::int32_t> experts(num_used);
    std::vector<float> weights(num_used);
    route_row(rule(), logits.data(), nullptr, experts.data(), weights.data());
    std::vector<float> sum(static_cast<std::size_t>(shape_.hidden_size));
    for (std::size_t i = 0; i < num_used; ++i) {
      const std::vector<float> y = run_expert(experts[i]);
      for (std::size_t j = 0; j < sum.size(); ++j) {
        const float product = y[j] * weights[i];
        sum[j] = i == 0 ? product : sum[j] + product;
      }
    }
    for (std::size_t j = 0; j < sum.size(); ++j) out[j] += scale == 1.0f ? sum[j] : sum[j] * scale;
    return out;
  }

  // Every expert has the same.
  void scale_up_and_down(float up, float down) {
    packed_up_->scales.assign(static_cast<std::size_t>(shape_.num_experts), up);
    packed_down_->scales.assign(static_cast<std::size_t>(shape_.num_experts), down);
  }
  std::int64_t skipped_weight_bytes() const { return backend_.skipped_weight_bytes(); }
  std::int64_t packed_bytes() const {
    return packed_gate_->packed_bytes + packed_up_->packed_bytes + packed_down_->packed_bytes;
  }
  std::span<const std::uint8_t> non_finite_rows() const { return backend_.non_finite_rows(); }
  void set_up_bias(std::int32_t expert, float value) {
    up_bias_[static_cast<std::size_t>(expert * shape_.intermediate_size)] = value;
  }

 private:
  struct Dense {
    std::unique_ptr<Matrix> gate, up, down;
  };

  static const float* data_or_null(const std::vector<float>& values) {
    return values.empty() ? nullptr : values.data();
  }
  static Rows rows_of(std::vector<float>& values, std::int32_t width) {
    return {.data = values.data(), .stride = width, .width = width};
  }

  void plan(std::int32_t num_rows) {
    tokens_.assign(static_cast<std::size_t>(num_rows), TokenId{0});
    slice_ = {.num_rows = num_rows, .num_wanted_rows = num_rows};
    batch_ = {.token_ids = tokens_, .sequences = {&slice_, 1}};
    backend_.plan(batch_, {});
  }

  static TensorView view(const kernels::RandomWeights& weights, std::int64_t first, std::int64_t count) {
    return {.name = "experts",
            .dtype = weights.dtype,
            .rank = 2,
            .shape = {weights.k, count, 1, 1},
            .data = reinterpret_cast<const std::byte*>(weights.row(first))};
  }
  std::unique_ptr<Matrix> pack(const kernels::RandomWeights& weights, std::int64_t first, std::int64_t count,
                               MatrixUse use) {
    const TensorView tensor = view(weights, first, count);
    auto matrix = *backend_.make_matrix(tensor, use);
    backend_.pack_rows(tensor, 0, *matrix);
    return matrix;
  }

  void pack_gate_and_up() {
    const std::int64_t width = shape_.intermediate_size;
    TensorView whole = view(gate_, 0, 2 * width * shape_.num_experts);
    packed_gate_and_up_ = *backend_.make_matrix(whole, MatrixUse::kExperts);
    for (std::int64_t e = 0; e < shape_.num_experts; ++e) {
      backend_.pack_rows(view(gate_, e * width, width), 2 * e * width, *packed_gate_and_up_);
      backend_.pack_rows(view(up_, e * width, width), (2 * e + 1) * width, *packed_gate_and_up_);
    }
  }

  std::vector<float> run_expert(std::int32_t expert) {
    const Dense& dense = dense_[static_cast<std::size_t>(expert)];
    const std::int32_t width = shape_.intermediate_size, hidden = shape_.hidden_size;
    std::vector<float> gate(static_cast<std::size_t>(width)), up(gate.size());
    std::vector<float> y(static_cast<std::size_t>(hidden));
    const auto bias = [expert](const std::vector<float>& values, std::int32_t n) {
      return values.empty() ? nullptr : values.data() + std::int64_t{expert} * n;
    };
    const MatmulOp gate_and_up[] = {
        {.weight = dense.gate.get(), .bias = bias(gate_bias_, width), .out = rows_of(gate, width)},
        {.weight = dense.up.get(), .bias = bias(up_bias_, width), .out = rows_of(up, width)}};
    backend_.matmul(*in_, gate_and_up);
    backend_.gate(Gate::kSilu, rows_of(gate, width), rows_of(up, width), *ff_);
    const MatmulOp down[] = {
        {.weight = dense.down.get(), .bias = bias(down_bias_, hidden), .out = rows_of(y, hidden)}};
    backend_.matmul(*ff_, down);
    return y;
  }

  const Shape shape_;
  ThreadPool pool_;
  CpuBackend backend_;
  kernels::RandomWeights gate_, up_, down_;
  std::unique_ptr<Matrix> packed_gate_, packed_up_, packed_down_, packed_gate_and_up_;
  std::vector<float> gate_bias_, up_bias_, down_bias_, gate_and_up_bias_;
  std::vector<Dense> dense_;
  std::unique_ptr<Activation> in_, ff_;
  std::unique_ptr<ExpertRows> experts_;
  std::vector<float> norm_;
  std::vector<TokenId> tokens_;
  BatchSequence slice_;
  BatchInput batch_;
};

std::vector<float> row_of(const std::vector<float>& values, std::int32_t row, std::int32_t width) {
  const auto begin = values.begin() + std::ptrdiff_t{row} * width;
  return {begin, begin + width};
}

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << "value " << i;
  }
}

class Experts : public kernels::EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, Experts, testing::ValuesIn(kernels::host_tables()), kernels::isa_name);

// Alone, in company of any size, by tiles and by panels, on any number of threads.
TEST_P(Experts, AddTheSumOfTheirDenseLayers) {
  for (const Shape& shape : kShapes) {
    for (const Precision precision : {Precision::kExact, Precision::kFast}) {
      for (const bool has_bias : {false, true}) {
        Mixture mixture(table(), has_bias ? 3 : 1, precision, shape, has_bias);
        for (const std::int32_t num_rows : {1, 5, 17, 150}) {
          SCOPED_TRACE(std::string(name_of(shape.dtype)) + " rows " + std::to_string(num_rows) +
                       (has_bias ? " bias" : "") + (precision == Precision::kFast ? " fast" : ""));
          const float scale = has_bias ? 0.22f : 1.0f;
          const auto x = random_floats(std::int64_t{num_rows} * shape.hidden_size, 10);
          const auto logits = random_floats(std::int64_t{num_rows} * shape.num_experts, 11);
          const auto out = random_floats(std::int64_t{num_rows} * shape.hidden_size, 12);
          const auto all = mixture.run(x, logits, out, scale);
          for (std::int32_t row = 0; row < num_rows; row += 1 + num_rows / 20) {
            expect_same_bits(
                row_of(all, row, shape.hidden_size),
                mixture.run_dense(row_of(x, row, shape.hidden_size), row_of(logits, row, shape.num_experts),
                                  row_of(out, row, shape.hidden_size), scale));
          }
        }
      }
    }
  }
}

// All rows go to the same experts: the others have none.
TEST_P(Experts, MayAllBeTheSame) {
  const Shape shape = kShapes[3];
  Mixture mixture(table(), 2, Precision::kExact, shape, false);
  const std::int32_t num_rows = 200;
  const auto x = random_floats(std::int64_t{num_rows} * shape.hidden_size, 10);
  const std::vector<float> logits_of_row = {0.5f, -3.0f, 1.0f};
  std::vector<float> logits;
  for (std::int32_t i = 0; i < num_rows; ++i) {
    logits.insert(logits.end(), logits_of_row.begin(), logits_of_row.end());
  }
  const std::vector<float> zeros(x.size());
  const auto all = mixture.run(x, logits, zeros);
  for (const std::int32_t row : {0, 63, 64, 199}) {
    expect_same_bits(row_of(all, row, shape.hidden_size),
                     mixture.run_dense(row_of(x, row, shape.hidden_size), logits_of_row,
                                       row_of(zeros, row, shape.hidden_size), 1.0f));
  }
}

TEST_P(Experts, GateAndUpMayBeOneMatrix) {
  for (const Shape& shape : kShapes) {
    Mixture mixture(table(), 2, Precision::kExact, shape, false);
    const auto x = random_floats(40 * std::int64_t{shape.hidden_size}, 10);
    const auto logits = random_floats(40 * std::int64_t{shape.num_experts}, 11);
    const std::vector<float> zeros(x.size());
    expect_same_bits(mixture.run(x, logits, zeros, 1.0f, true), mixture.run(x, logits, zeros));
  }
}

TEST_P(Experts, MayCountByFactorsOfTheirOwn) {
  const Shape shape = kShapes[2];
  Mixture mixture(table(), 2, Precision::kExact, shape, false);
  const auto x = random_floats(20 * std::int64_t{shape.hidden_size}, 10);
  const auto logits = random_floats(20 * std::int64_t{shape.num_experts}, 11);
  const std::vector<float> zeros(x.size());
  const std::vector<float> plain = mixture.run(x, logits, zeros);
  std::vector<float> twice = plain;
  for (float& value : twice) value *= 2.0f;
  // Factors of `up` and `down` go through; half of an activation's input would not be half of its output.
  mixture.scale_up_and_down(4.0f, 0.5f);
  expect_same_bits(mixture.run(x, logits, zeros), twice);
  mixture.scale_up_and_down(1.0f, 0.0f);
  expect_same_bits(mixture.run(x, logits, zeros), zeros);
}

TEST_P(Experts, MayTakeThePlaceOfWhatWasThere) {
  const Shape shape = kShapes[1];
  Mixture mixture(table(), 2, Precision::kExact, shape, false);
  const auto x = random_floats(20 * std::int64_t{shape.hidden_size}, 10);
  const auto logits = random_floats(20 * std::int64_t{shape.num_experts}, 11);
  const auto before = random_floats(std::ssize(x), 12);
  expect_same_bits(mixture.run(x, logits, before, 1.0f, false, true),
                   mixture.run(x, logits, std::vector<float>(x.size())));
}

// A fault of an expert is blamed on the row that it worked on, wherever the expert's rows lie.
TEST_P(Experts, BadNumbersAreTheirRowsOwn) {
  const Shape shape = kShapes[2];
  Mixture mixture(table(), 2, Precision::kExact, shape, true);
  const std::int32_t num_rows = 20, bad_expert = 5;
  const auto x = random_floats(std::int64_t{num_rows} * shape.hidden_size, 10);
  auto logits = random_floats(std::int64_t{num_rows} * shape.num_experts, 11);
  for (std::int32_t row = 0; row < num_rows; ++row) {
    logits[static_cast<std::size_t>(row * shape.num_experts + bad_expert)] = row % 7 == 3 ? 1e3f : -1e3f;
  }
  mixture.set_up_bias(bad_expert, 1e38f);
  mixture.run(x, logits, std::vector<float>(x.size()));
  for (std::int32_t row = 0; row < num_rows; ++row) {
    EXPECT_EQ(mixture.non_finite_rows()[static_cast<std::size_t>(row)], row % 7 == 3) << row;
  }
}

// One row of 16 experts' 4 leaves 12 experts unread.
TEST_P(Experts, WithoutRowsAreNotRead) {
  const Shape shape = kShapes[2];
  Mixture mixture(table(), 1, Precision::kExact, shape, false);
  const std::vector<float> x(static_cast<std::size_t>(shape.hidden_size), 1.0f);
  const auto logits = random_floats(shape.num_experts, 11);
  mixture.run(x, logits, x);
  EXPECT_EQ(mixture.skipped_weight_bytes(), mixture.packed_bytes() * 12 / 16);
}

TEST_P(Experts, ASharedOneCountsByItsGate) {
  ThreadPool pool(1);
  CpuBackend backend(table(), pool, Precision::kExact);
  const ExpertShape shape{
      .max_rows = 2, .num_experts = 2, .num_used = 1, .hidden_size = 32, .intermediate_size = 32};
  const auto experts = *backend.make_expert_rows(shape);
  const std::vector<TokenId> tokens(2, TokenId{0});
  const BatchSequence slice{.num_rows = 2, .num_wanted_rows = 2};
  const BatchInput batch{.token_ids = tokens, .sequences = {&slice, 1}};
  backend.plan(batch, {});
  std::vector<float> gates = {0.0f, 2.0f}, y(64, 3.0f), out(64, 1.0f);
  backend.add_gated({.data = gates.data(), .stride = 1, .width = 1},
                    {.data = y.data(), .stride = 32, .width = 32}, 0.5f,
                    {.data = out.data(), .stride = 32, .width = 32});
  EXPECT_FLOAT_EQ(out[0], 1.75f);
  EXPECT_FLOAT_EQ(out[63], static_cast<float>(1.0 + 1.5 / (1.0 + std::exp(-2.0))));
}

}  // namespace
}  // namespace kvasir::backend::experts_test
