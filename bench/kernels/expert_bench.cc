// Speed of a mixture-of-experts layer beside dense layers of the same weights and the same rows an expert.
//
//   kvasir_expert_bench [--isa NAME] [--type Q4_K] [--experts 8] [--used 2] [--hidden 2048] [--width 8192]
//                       [--layers 2] [--rows 1,64,512] [--threads 2]
//
// A dense layer is one expert's gate, up and down over its share of the rows, by the backend's dense ops; all
// experts run one after the other. The mixture does the same products in its one op, and gathers and adds up
// besides. Rows are spread evenly. Rates are the fastest of several repetitions: GMAC/s is 1e9 multiply-accumulates
// of matmuls a second, GB/s counts the packed weights of experts that have rows.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "kernels/random_weights.h"

namespace kvasir::bench {
namespace {

using backend::Matrix;
using backend::MatrixUse;
using backend::Rows;

constexpr int kRepetitions = 7;

struct Options {
  std::string isa = kernels::best_table().isa;
  std::string type = "Q4_K";
  std::int32_t experts = 8, used = 2, hidden = 2048, width = 8192, layers = 2, threads = 2;
  std::vector<std::int32_t> rows = {1, 64, 512};
};

bool parse(int argc, char** argv, Options& options) {
  const std::pair<std::string_view, std::int32_t*> numbers[] = {
      {"--experts", &options.experts}, {"--used", &options.used},     {"--hidden", &options.hidden},
      {"--width", &options.width},     {"--layers", &options.layers}, {"--threads", &options.threads}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto* number = std::ranges::find(numbers, name, &std::pair<std::string_view, std::int32_t*>::first);
    if (number != std::end(numbers)) {
      *number->second = std::max(1, std::atoi(argv[i + 1]));
    } else if (name == "--isa") {
      options.isa = argv[i + 1];
    } else if (name == "--type") {
      options.type = argv[i + 1];
    } else if (name == "--rows") {
      options.rows.clear();
      for (const char* at = argv[i + 1]; at != nullptr; at = std::strchr(at, ',')) {
        if (*at == ',') ++at;
        options.rows.push_back(std::max(1, std::atoi(at)));
      }
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options.used <= options.experts;
}

// One layer: the weights of all experts, both as the mixture and as dense layers have them.
struct Layer {
  std::unique_ptr<Matrix> gate, up, down;
  struct Dense {
    std::unique_ptr<Matrix> gate, up, down;
  };
  std::vector<Dense> experts;
};

class Run {
 public:
  Run(const kernels::KernelTable& table, const Options& options, DType dtype)
      : options_(options), pool_(options.threads), backend_(table, pool_, backend::Precision::kExact) {
    const std::int64_t hidden = options.hidden, width = options.width;
    const auto wide = kernels::random_weights(dtype, width, hidden, 0.02f, 1);
    const auto narrow = kernels::random_weights(dtype, hidden, width, 0.02f, 2);
    for (std::int32_t i = 0; i < options.layers; ++i) {
      Layer& layer = layers_.emplace_back();
      layer.gate = pack(wide, options.experts, MatrixUse::kExperts);
      layer.up = pack(wide, options.experts, MatrixUse::kExperts);
      layer.down = pack(narrow, options.experts, MatrixUse::kExperts);
      for (std::int32_t e = 0; e < options.experts; ++e) {
        layer.experts.push_back({pack(wide, 1, MatrixUse::kLayer), pack(wide, 1, MatrixUse::kLayer),
                                 pack(narrow, 1, MatrixUse::kLayer)});
      }
    }
    const std::int32_t max_rows = *std::ranges::max_element(options.rows);
    in_ = *backend_.make_activation(max_rows, options.hidden);
    ff_ = *backend_.make_activation(max_rows, options.width);
    x_ = *backend_.make_rows(max_rows, options.hidden);
    gate_ = *backend_.make_rows(max_rows, options.width);
    up_ = *backend_.make_rows(max_rows, options.width);
    logits_ = *backend_.make_rows(max_rows, options.experts);
    experts_ = *backend_.make_expert_rows({.max_rows = max_rows,
                                           .num_experts = options.experts,
                                           .num_used = options.used,
                                           .hidden_size = options.hidden,
                                           .intermediate_size = options.width});
  }

  // Seconds of a mixture layer over so many rows.
  double mixture_seconds(std::int32_t num_rows) {
    prepare(num_rows);
    for (std::int32_t row = 0; row < num_rows; ++row) {
      for (std::int32_t e = 0; e < options_.experts; ++e) {
        const std::int32_t distance = (e - row * options_.used % options_.experts + options_.experts) %
                                      options_.experts;
        logits_.row(row)[e] = distance < options_.used ? 1.0f : 0.0f;
      }
    }
    return fastest([&](const Layer& layer) {
      backend_.route(
          {.logits = logits_,
           .rule = {.num_experts = options_.experts, .num_used = options_.used, .renormalizes = true}},
          *experts_);
      backend_.add_experts({.gate = {layer.gate.get()}, .up = {layer.up.get()}, .down = {layer.down.get()}},
                           *in_, *experts_, x_);
    });
  }

  // Seconds of the dense layers of so many experts, each over rows_each rows.
  double dense_seconds(std::int32_t rows_each, std::int32_t num_experts) {
    prepare(rows_each);
    return fastest([&](const Layer& layer) {
      for (std::int32_t e = 0; e < num_experts; ++e) {
        const Layer::Dense& dense = layer.experts[static_cast<std::size_t>(e)];
        const backend::MatmulOp gate_and_up[] = {{.weight = dense.gate.get(), .out = gate_},
                                                 {.weight = dense.up.get(), .out = up_}};
        backend_.matmul(*in_, gate_and_up);
        backend_.gate(backend::Gate::kSilu, gate_, up_, *ff_);
        const backend::MatmulOp down[] = {{.weight = dense.down.get(), .out = x_}};
        backend_.matmul(*ff_, down);
      }
    });
  }

  std::int64_t bytes_of_expert() const {
    const Layer::Dense& dense = layers_.front().experts.front();
    return dense.gate->packed_bytes + dense.up->packed_bytes + dense.down->packed_bytes;
  }

 private:
  std::unique_ptr<Matrix> pack(const kernels::RandomWeights& weights, std::int64_t count, MatrixUse use) {
    TensorView tensor{.name = "weights",
                      .dtype = weights.dtype,
                      .rank = 2,
                      .shape = {weights.k, count * weights.num_rows, 1, 1},
                      .data = reinterpret_cast<const std::byte*>(weights.row(0))};
    auto matrix = *backend_.make_matrix(tensor, use);
    tensor.shape[1] = weights.num_rows;
    for (std::int64_t i = 0; i < count; ++i) backend_.pack_rows(tensor, i * weights.num_rows, *matrix);
    return matrix;
  }

  // Plans a batch of random rows.
  void prepare(std::int32_t num_rows) {
    tokens_.assign(static_cast<std::size_t>(num_rows), TokenId{0});
    slice_ = {.num_rows = num_rows, .num_wanted_rows = num_rows};
    batch_ = {.token_ids = tokens_, .sequences = {&slice_, 1}};
    backend_.plan(batch_, {});
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::int32_t row = 0; row < num_rows; ++row) {
      for (std::int32_t i = 0; i < options_.hidden; ++i) {
        x_.row(row)[i] = normal(random) * (i % (13 * kernels::kActivationBlock) == 5 ? 30.0f : 1.0f);
      }
    }
    const std::vector<float> ones(static_cast<std::size_t>(options_.hidden), 1.0f);
    backend_.norm(x_, {.kind = backend::NormKind::kRms, .weight = ones, .eps = 1e-6f}, *in_);
  }

  // The fastest time of one layer.
  template <class F>
  double fastest(const F& run_layer) {
    double best = 1e9;
    for (int i = 0; i <= kRepetitions; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      for (const Layer& layer : layers_) run_layer(layer);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      if (i > 0) best = std::min(best, seconds.count() / static_cast<double>(layers_.size()));
    }
    return best;
  }

  const Options options_;
  ThreadPool pool_;
  backend::CpuBackend backend_;
  std::vector<Layer> layers_;
  std::unique_ptr<backend::Activation> in_, ff_;
  std::unique_ptr<backend::ExpertRows> experts_;
  Rows x_, gate_, up_, logits_;
  std::vector<TokenId> tokens_;
  backend::BatchSequence slice_;
  backend::BatchInput batch_;
};

int run_benchmark(int argc, char** argv) {
  Options options;
  const bool is_valid = parse(argc, argv, options);
  const auto* const info = std::ranges::find(kDTypeInfos, std::string_view(options.type), &DTypeInfo::name);
  const kernels::KernelTable* table = kernels::find_table(options.isa.c_str());
  if (!is_valid || info == std::end(kDTypeInfos) || table == nullptr) {
    fmt::print(stderr,
               "usage: kvasir_expert_bench [--isa NAME] [--type NAME] [--experts N] [--used N] [--hidden N] "
               "[--width N] [--layers N] [--rows A,B] [--threads N]\n");
    return 2;
  }
  Run run(*table, options, info->dtype);
  fmt::print("{} {} {}T: {} experts of {} over {}, {} used\n", table->isa, info->name, options.threads,
             options.experts, options.width, options.hidden, options.used);
  for (const std::int32_t num_rows : options.rows) {
    const std::int32_t num_slots = num_rows * options.used;
    const std::int32_t num_busy = std::min(options.experts, num_slots);
    const std::int32_t rows_each = std::max(1, num_slots / num_busy);
    const double macs = 3.0 * num_slots * options.hidden * options.width;
    const double dense_macs = 3.0 * rows_each * num_busy * options.hidden * options.width;
    const double mixture = run.mixture_seconds(num_rows), dense = run.dense_seconds(rows_each, num_busy);
    const double bytes = static_cast<double>(run.bytes_of_expert()) * num_busy;
    fmt::print(
        "rows {:5} ({:4} an expert): mixture {:6.1f} GMAC/s {:5.1f} GB/s, dense {:6.1f} GMAC/s {:5.1f} "
        "GB/s, ratio {:.2f}\n",
        num_rows, rows_each, macs / mixture / 1e9, bytes / mixture / 1e9, dense_macs / dense / 1e9,
        bytes / dense / 1e9, macs / mixture / (dense_macs / dense));
  }
  return 0;
}

}  // namespace
}  // namespace kvasir::bench

int main(int argc, char** argv) { return kvasir::bench::run_benchmark(argc, argv); }
