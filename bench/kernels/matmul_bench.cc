// Speed of every format's matmul beside the host's limits.
//
//   kvasir_matmul_bench [--isa NAME] [--k N] [--rows N] [--types Q4_1,Q8_0,...] [--tokens 1,8,512] [--threads
//   1,2]
//
// Weights are walked from memory: enough copies of the matrix that no cache holds them. Rates are those of
// the fastest of several repetitions: GMAC/s is 1e9 multiply-accumulates a second, GB/s counts packed weights
// once a pass. Before a rate is printed, the result has been compared bit by bit with the scalar reference.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "bench/kernels/host_limits.h"
#include "bench/kernels/parallel_timing.h"
#include "kernels/matmul_problem.h"

namespace kvasir::bench {
namespace {

using kernels::FormatKernels;
using kernels::KernelTable;
using kernels::kRowsPerGroup;
using kernels::MatmulArgs;
using kernels::MatmulProblem;
using kernels::MatmulShape;

constexpr std::int64_t kWeightBytes = std::int64_t{160} << 20;
constexpr double kMacsPerRepetition = 5e8;
constexpr int kRepetitions = 25;

struct Options {
  std::string isa = kernels::best_table().isa;
  std::int64_t k = 2048, rows = 2048;
  std::vector<std::string> types;  // all when empty
  std::vector<int> tokens = {1, 4, 8, 16, 64, 512};
  std::vector<int> threads = {1, 2};
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::vector<int> split_numbers(std::string_view text) {
  std::vector<int> numbers;
  for (const std::string& part : split(text)) numbers.push_back(std::max(1, std::atoi(part.c_str())));
  return numbers;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i], value = argv[i + 1];
    if (name == "--isa") {
      options.isa = value;
    } else if (name == "--k") {
      options.k = split_numbers(value)[0];
    } else if (name == "--rows") {
      options.rows = split_numbers(value)[0];
    } else if (name == "--types") {
      options.types = split(value);
    } else if (name == "--tokens") {
      options.tokens = split_numbers(value);
    } else if (name == "--threads") {
      options.threads = split_numbers(value);
    } else {
      return false;
    }
  }
  return argc % 2 == 1;
}

// Normal values, and one outlier channel in 8% of the blocks, the share SmolLM2-135M has.
std::vector<float> activations(const MatmulShape& shape) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(shape.num_tokens * shape.k));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t channel = static_cast<std::int64_t>(i) % shape.k;
    x[i] = normal(random) * (channel % (13 * kernels::kActivationBlock) == 5 ? 30.0f : 1.0f);
  }
  return x;
}

// One format's weights, repeated until no cache holds them, and a batch of activations.
class MatmulRun {
 public:
  MatmulRun(const KernelTable& table, const MatmulShape& shape)
      : format_(table.formats[static_cast<int>(shape.dtype)]),
        problem_(shape, kernels::random_weights(shape.dtype, shape.num_rows, shape.k, 0.02f, 0),
                 activations(shape)),
        out_(static_cast<std::size_t>(shape.num_tokens * shape.num_rows)),
        args_(problem_.args(table, out_.data())),
        matrix_bytes_(format_.packed_group_bytes(shape.k) * args_.group_end),
        num_copies_((kWeightBytes + matrix_bytes_ - 1) / matrix_bytes_),
        copies_(std::move(AlignedBuffer::allocate(matrix_bytes_ * num_copies_).value())) {
    for (std::int64_t c = 0; c < num_copies_; ++c) {
      std::memcpy(copies_.data() + c * matrix_bytes_, args_.weights, static_cast<std::size_t>(matrix_bytes_));
    }
  }

  std::int64_t matrix_bytes() const { return matrix_bytes_; }

  bool equals_reference(const KernelTable& ref) {
    const std::int64_t few_rows = std::min<std::int64_t>(problem_.shape().num_rows, 4 * kRowsPerGroup);
    MatmulArgs args = args_;
    args.group_end = (few_rows + kRowsPerGroup - 1) / kRowsPerGroup;
    std::vector<float> expected(out_.size());
    format_.matmul(args);
    args.out = expected.data();
    ref.formats[static_cast<int>(problem_.shape().dtype)].matmul(args);
    for (std::int32_t t = 0; t < args.num_tokens; ++t) {
      const std::int64_t at = t * args.out_stride;
      if (std::memcmp(out_.data() + at, expected.data() + at, static_cast<std::size_t>(few_rows) * 4) != 0) {
        return false;
      }
    }
    return true;
  }

  double macs() const {
    return static_cast<double>(args_.k) * static_cast<double>(args_.num_rows) * args_.num_tokens;
  }

  // Seconds of one matmul, its groups shared out evenly.
  double seconds(int num_threads) {
    const auto passes = std::max<std::int64_t>(1, static_cast<std::int64_t>(kMacsPerRepetition / macs()));
    const std::int64_t num_matmuls = std::min<std::int64_t>(passes, num_copies_);
    const double total = fastest_seconds(num_threads, kRepetitions, [&](int thread) {
      for (std::int64_t i = 0; i < num_matmuls; ++i) {
        MatmulArgs args = args_;
        args.weights = copies_.data() + i * matrix_bytes_;
        args.group_begin = args_.group_end * thread / num_threads;
        args.group_end = args_.group_end * (thread + 1) / num_threads;
        format_.matmul(args);
      }
    });
    return total / static_cast<double>(num_matmuls);
  }

 private:
  const FormatKernels& format_;
  MatmulProblem problem_;
  std::vector<float> out_;
  MatmulArgs args_;
  std::int64_t matrix_bytes_, num_copies_;
  AlignedBuffer copies_;
};

void print_format(const KernelTable& table, const Options& options, const DTypeInfo& info, int num_threads) {
  fmt::print("{:5} {}T", info.name, num_threads);
  for (const int num_tokens : options.tokens) {
    MatmulRun run(table,
                  {.dtype = info.dtype, .k = options.k, .num_rows = options.rows, .num_tokens = num_tokens});
    if (!run.equals_reference(*kernels::find_table("ref"))) {
      fmt::print(" differs from the scalar reference\n");
      std::exit(1);
    }
    const double seconds = run.seconds(num_threads);
    fmt::print(" | N={} {:.0f}", num_tokens, run.macs() / seconds / 1e9);
    if (num_tokens == 1)
      fmt::print(" ({:.1f} GB/s)", static_cast<double>(run.matrix_bytes()) / seconds / 1e9);
    std::fflush(stdout);
  }
  fmt::print("\n");
}

int run_benchmark(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    fmt::print(stderr,
               "usage: kvasir_matmul_bench [--isa NAME] [--k N] [--rows N] [--types A,B] [--tokens A,B] "
               "[--threads A,B]\n");
    return 2;
  }
  const KernelTable* table = kernels::find_table(options.isa.c_str());
  if (table == nullptr) {
    fmt::print(stderr, "this host does not run '{}'\n", options.isa);
    return 2;
  }
  for (const int num_threads : options.threads) {
    const HostLimits limits = measure_host_limits(num_threads);
    fmt::print("{} k={} rows={}, GMAC/s; {}T limits: {:.0f} GMAC/s int8, {:.1f} GB/s read\n", table->isa,
               options.k, options.rows, num_threads, limits.int8_macs_per_second / 1e9,
               limits.read_bytes_per_second / 1e9);
    for (const DTypeInfo& info : kDTypeInfos) {
      const bool wanted = options.types.empty() || std::find(options.types.begin(), options.types.end(),
                                                             info.name) != options.types.end();
      if (wanted && options.k % std::max(info.block_elements, 32) == 0) {
        print_format(*table, options, info, num_threads);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvasir::bench

int main(int argc, char** argv) { return kvasir::bench::run_benchmark(argc, argv); }
