// Decode by matrices of which two of every four weights are zeros (2:4), beside the dense formats.
//
//   kvasir_sparse_matmul_bench [--isa avx512|avx2] [--k N] [--rows N] [--copies-mib N] [--repetitions N] [--types A,B]
//
// One token, one thread. Contenders take turns, so that a busy machine slows all of them; processor time counts. --copies-mib 0
// walks one matrix again and again, from the cache; else each contender walks so many MiB of copies. Every result has been
// compared bit by bit: the dense ones with the scalar reference, the sparse ones with the scalar reference of the dense
// matrix with its zeros. A line of JSON for each: bits a weight, nanoseconds a row, GB/s of packed weights and GMAC/s of the
// dense matrix by the median, the quartiles of the time, and the median of its ratio to Q4_0's time in the same turn.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/check.h"
#include "bench/kernels/sparse/units.h"
#include "kernels/matmul_problem.h"

namespace kvasir::bench {
namespace {

using kernels::KernelTable;
using kernels::kPackedRows;
using kernels::MatmulArgs;
using kernels::MatmulProblem;
using kernels::MatmulShape;

struct SparseBenchOptions {
  std::string isa = "avx512", types = "Q8_0,Q6_K,Q5_0,Q4_0,Q4_K,Q3_K,Q2_K,Q2_0";
  std::int64_t k = 1536, rows = 576, copies_mib = 0, repetitions = 101;
};

// Without outlier codes, which both sides would take alike.
std::vector<float> even_activations(std::int64_t k) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> x(static_cast<std::size_t>(k));
  for (float& value : x) value = uniform(random);
  return x;
}

// The signed code of a file's row of Q8_0 or Q4_0: two bytes of scale and then 32 codes or 16 pairs.
int code_at(DType dtype, const char* row, std::int64_t i) {
  if (dtype == DType::kQ8_0) return static_cast<signed char>(row[i / 32 * 34 + 2 + i % 32]);
  const int byte = static_cast<unsigned char>(row[i / 32 * 18 + 2 + i % 16]);
  return (i % 32 < 16 ? byte & 15 : byte >> 4) - 8;
}

void put_zero(DType dtype, char* row, std::int64_t i) {
  if (dtype == DType::kQ8_0) {
    row[i / 32 * 34 + 2 + i % 32] = 0;
    return;
  }
  char& byte = row[i / 32 * 18 + 2 + i % 16];
  byte = static_cast<char>(i % 32 < 16 ? (byte & 0xf0) | 8 : (byte & 0x0f) | 0x80);
}

// Random weights with two zeros, at random places, in every four.
kernels::RandomWeights sparse_weights(DType dtype, std::int64_t rows, std::int64_t k) {
  kernels::RandomWeights weights = kernels::random_weights(dtype, rows, k, 0.02f, 0);
  std::mt19937 random(2);
  for (std::int64_t r = 0; r < rows; ++r) {
    char* row = weights.bytes.data() + r * weights.row_bytes();
    for (std::int64_t i = 0; i < k; i += 4) {
      const std::int64_t first = random() % 4, second = (first + 1 + random() % 3) % 4;
      put_zero(dtype, row, i + first);
      put_zero(dtype, row, i + second);
    }
  }
  return weights;
}

// The two of four neighbours that are kept: those that are no zeros, as far as there are two.
std::pair<int, int> kept_of(DType dtype, const char* row, std::int64_t first) {
  int kept[4], count = 0;
  for (int i = 0; i < 4; ++i) {
    if (code_at(dtype, row, first + i) != 0) kept[count++] = i;
  }
  CHECK(count <= 2);
  for (int i = 0; count < 2; ++i) {
    if (count == 0 || i != kept[0]) kept[count++] = i;
  }
  return {std::min(kept[0], kept[1]), std::max(kept[0], kept[1])};
}

void put_code(SparseQ8_0& unit, int block, int vector, int byte, int code) {
  unit.codes[block][vector][byte] = static_cast<std::uint8_t>(code + 128);
}
void put_code(SparseQ4_0& unit, int block, int vector, int byte, int code) {
  unit.nibbles[block][vector % 2][byte] |= static_cast<std::uint8_t>((code + 8) << (vector < 2 ? 0 : 4));
}

template <class Unit>
void pack_row(const kernels::RandomWeights& weights, std::int64_t row, Unit* units) {
  const char* codes = weights.row(row);
  const int lane = static_cast<int>(row % kPackedRows);
  for (std::int64_t b = 0; b < weights.k / 32; ++b) {
    Unit& unit = units[b / Unit::kBlocks];
    const int block = static_cast<int>(b % Unit::kBlocks);
    std::memcpy(&unit.scales[block][lane], codes + b * info_of(Unit::kDType).block_bytes, 2);
    for (int group = 0; group < 8; ++group) {
      const std::int64_t first = 32 * b + 4 * group;
      const auto [one, other] = kept_of(Unit::kDType, codes, first);
      const int byte = 4 * lane + group % 2 * 2, vector = group / 2;
      unit.places[block][byte] |= static_cast<std::uint8_t>(one << 2 * vector);
      unit.places[block][byte + 1] |= static_cast<std::uint8_t>(other << 2 * vector);
      put_code(unit, block, vector, byte, code_at(Unit::kDType, codes, first + one));
      put_code(unit, block, vector, byte + 1, code_at(Unit::kDType, codes, first + other));
    }
  }
}

template <class Unit>
AlignedBuffer pack_sparse(const kernels::RandomWeights& weights) {
  const std::int64_t num_units = weights.k / (32 * Unit::kBlocks);
  AlignedBuffer packed = std::move(AlignedBuffer::allocate(weights.num_rows / kPackedRows * num_units *
                                                           static_cast<std::int64_t>(sizeof(Unit)))
                                       .value());
  std::memset(packed.data(), 0, static_cast<std::size_t>(packed.size_bytes()));
  auto* units = reinterpret_cast<Unit*>(packed.data());
  for (std::int64_t row = 0; row < weights.num_rows; ++row)
    pack_row(weights, row, units + row / kPackedRows * num_units);
  return packed;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A matrix in one format, its copies, and the times of its products.
class Contender {
 public:
  Contender(const KernelTable& table, const SparseBenchOptions& options, DType dtype, bool is_sparse)
      : name_(std::string(is_sparse ? "2:4 " : "") + std::string(name_of(dtype))),
        problem_({.dtype = dtype, .k = options.k, .num_rows = options.rows, .num_tokens = 1},
                 is_sparse ? sparse_weights(dtype, options.rows, options.k)
                           : kernels::random_weights(dtype, options.rows, options.k, 0.02f, 0),
                 even_activations(options.k)),
        out_(static_cast<std::size_t>(options.rows)),
        args_(problem_.args(table, out_.data())) {
    const kernels::FormatKernels& format = kernels::format_of(table, problem_.shape());
    const void* packed = args_.weights;
    matrix_bytes_ = format.packed_group_bytes(args_.k) * args_.group_end;
    matmul_ = [this, &format](const void* weights) {
      args_.weights = weights;
      format.matmul(args_);
    };
    AlignedBuffer sparse;
    if (is_sparse) {
      sparse = dtype == DType::kQ8_0 ? pack_sparse<SparseQ8_0>(problem_.weights())
                                     : pack_sparse<SparseQ4_0>(problem_.weights());
      packed = sparse.data();
      matrix_bytes_ = sparse.size_bytes();
      use_sparse(options);
    }
    num_copies_ = std::max<std::int64_t>(1, (options.copies_mib << 20) / matrix_bytes_);
    copies_ = std::move(AlignedBuffer::allocate(matrix_bytes_ * num_copies_).value());
    for (std::int64_t c = 0; c < num_copies_; ++c) {
      std::memcpy(copies_.data() + c * matrix_bytes_, packed, static_cast<std::size_t>(matrix_bytes_));
    }
    check();
  }
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  // Seconds of one product. From the cache: of several, after one that does not count.
  double measure(bool from_cache) {
    const int count = from_cache ? 20 : 1;
    if (from_cache) matmul_(copies_.data());
    const double begin = cpu_seconds();
    for (int i = 0; i < count; ++i) matmul_(copies_.data() + (next_++ % num_copies_) * matrix_bytes_);
    seconds_.push_back((cpu_seconds() - begin) / count);
    return seconds_.back();
  }

  void print(const SparseBenchOptions& options, const std::vector<double>& of_q4_0) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < seconds_.size(); ++i) ratios.push_back(of_q4_0[i] / seconds_[i]);
    const double median = quantile(seconds_, 0.5), macs = static_cast<double>(options.k * options.rows);
    fmt::print(
        "{{\"isa\": \"{}\", \"k\": {}, \"rows\": {}, \"from\": \"{}\", \"weights\": \"{}\", \"bits\": "
        "{:.3f}, \"ns_per_row\": {:.2f}, "
        "\"ns_per_row_quartiles\": [{:.2f}, {:.2f}], \"gb_per_s\": {:.2f}, \"gmac_per_s\": {:.1f}, "
        "\"times_q4_0_speed\": {:.3f}, "
        "\"times_q4_0_speed_quartiles\": [{:.3f}, {:.3f}], \"repetitions\": {}}}\n",
        options.isa, options.k, options.rows, options.copies_mib == 0 ? "cache" : "memory", name_,
        8.0 * static_cast<double>(matrix_bytes_) / macs, ns_per_row(options, median),
        ns_per_row(options, quantile(seconds_, 0.25)), ns_per_row(options, quantile(seconds_, 0.75)),
        static_cast<double>(matrix_bytes_) / median / 1e9, macs / median / 1e9, quantile(ratios, 0.5),
        quantile(ratios, 0.25), quantile(ratios, 0.75), seconds_.size());
  }

  const std::string& name() const { return name_; }
  const std::vector<double>& seconds() const { return seconds_; }

 private:
  void use_sparse(const SparseBenchOptions& options) {
    const SparseMatmul matmul = sparse_matmul_of(problem_.shape().dtype, options.isa.c_str());
    const kernels::ConstActivationTile tile = kernels::activation_tile(args_.quantized, args_.k, 0, 1);
    for (std::int64_t b = 0; b < args_.k / 32; ++b)
      CHECK(tile.outlier_groups[b * kernels::kTokensPerActivationTile] == 0);
    const SparseArgs sparse{
        .units = nullptr, .k = args_.k, .num_groups = args_.group_end, .x = tile.blocks, .out = out_.data()};
    matmul_ = [matmul, sparse](const void* weights) {
      SparseArgs args = sparse;
      args.units = weights;
      matmul(args);
    };
  }

  void check() {
    const void* packed = args_.weights;
    std::vector<float> expected(out_.size());
    MatmulArgs args = args_;
    args.out = expected.data();
    kernels::format_of(*kernels::find_table("ref"), problem_.shape()).matmul(args);
    matmul_(copies_.data());
    args_.weights = packed;
    if (std::memcmp(out_.data(), expected.data(), out_.size() * sizeof(float)) == 0) return;
    fmt::print(stderr, "{} differs from the scalar reference\n", name_);
    std::exit(1);
  }

  static double ns_per_row(const SparseBenchOptions& options, double seconds) {
    return seconds * 1e9 / static_cast<double>(options.rows);
  }

  static double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
  }

  std::string name_;
  MatmulProblem problem_;
  std::vector<float> out_;
  MatmulArgs args_;
  std::function<void(const void*)> matmul_;
  std::int64_t matrix_bytes_ = 0, num_copies_ = 0, next_ = 0;
  AlignedBuffer copies_;
  std::vector<double> seconds_;
};

bool parse_sparse(int argc, char** argv, SparseBenchOptions& options) {
  const std::pair<std::string_view, std::int64_t*> numbers[] = {{"--k", &options.k},
                                                                {"--rows", &options.rows},
                                                                {"--copies-mib", &options.copies_mib},
                                                                {"--repetitions", &options.repetitions}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto* number = std::ranges::find(numbers, name, &std::pair<std::string_view, std::int64_t*>::first);
    if (number != std::end(numbers)) {
      *number->second = std::atoll(argv[i + 1]);
    } else if (name == "--isa") {
      options.isa = argv[i + 1];
    } else if (name == "--types") {
      options.types = argv[i + 1];
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options.k > 0 && options.k % 64 == 0 && options.rows > 0 &&
         options.rows % kPackedRows == 0 && options.repetitions > 0;
}

bool is_listed(const std::string& types, std::string_view name) {
  return ("," + types + ",").find("," + std::string(name) + ",") != std::string::npos;
}

std::vector<std::unique_ptr<Contender>> contenders(const KernelTable& table,
                                                   const SparseBenchOptions& options) {
  std::vector<std::unique_ptr<Contender>> all;
  for (const DTypeInfo& info : kDTypeInfos) {
    if (info.dtype != DType::kQ4_0 && !is_listed(options.types, info.name))
      continue;  // Q4_0 is what others are compared with
    if (options.k % std::max(info.block_elements, 32) == 0)
      all.push_back(std::make_unique<Contender>(table, options, info.dtype, false));
  }
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    if (sparse_matmul_of(dtype, options.isa.c_str()) != nullptr)
      all.push_back(std::make_unique<Contender>(table, options, dtype, true));
  }
  return all;
}

int run_sparse_benchmark(int argc, char** argv) {
  SparseBenchOptions options;
  if (!parse_sparse(argc, argv, options)) {
    fmt::print(stderr,
               "usage: kvasir_sparse_matmul_bench [--isa NAME] [--k N] [--rows N] [--copies-mib N] "
               "[--repetitions N] [--types A,B]\n");
    return 2;
  }
  const KernelTable* table = kernels::find_table(options.isa.c_str());
  if (table == nullptr) {
    fmt::print(stderr, "this host does not run '{}'\n", options.isa);
    return 2;
  }
  const auto all = contenders(*table, options);
  for (std::int64_t i = 0; i < options.repetitions; ++i) {
    for (const auto& each : all) each->measure(options.copies_mib == 0);
  }
  const auto q4_0 = std::ranges::find(all, "Q4_0", [](const auto& each) { return each->name(); });
  for (const auto& each : all) each->print(options, (*q4_0)->seconds());
  return 0;
}

}  // namespace
}  // namespace kvasir::bench

int main(int argc, char** argv) { return kvasir::bench::run_sparse_benchmark(argc, argv); }
