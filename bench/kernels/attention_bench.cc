// Speed of the attention kernels on one core: kvasir_attention_bench [isa]
//
// Checks every shape against dense float64 softmax first, then times it: median and spread of 7 runs, as
// multiply-accumulates of visible keys (scores and values) per second and as bytes of K and V read per
// second. Seconds are CPU seconds of this thread: a neighbour on the same core does not count.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "kernels/attention_problem.h"

namespace kvasir::kernels {
namespace {

constexpr int kRuns = 7;
constexpr double kSecondsPerRun = 0.05;
constexpr double kTolerance = 5e-6;
constexpr double kCodesTolerance = 5e-5;        // of queries and weights that are rounded to 15 bits
constexpr double kPromptCodesTolerance = 3e-4;  // likewise; a prompt's first tokens see few keys

struct Measurement {
  double median_seconds;
  double best_seconds;
  double worst_seconds;
};

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double largest_error(const AttentionOutput& output, const AttentionOutput& dense) {
  double largest = 0.0;
  for (std::size_t i = 0; i < dense.out.size(); ++i) {
    // A NaN compares false with everything, so it must not be left to std::max.
    const double error = std::abs(double{output.out[i]} - dense.out[i]);
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

Measurement measure(const KernelTable& table, const AttentionShape& shape, const AttentionProblem& problem) {
  std::vector<float> out(problem.num_rows() * shape.head_dim), max(problem.num_rows()),
      sum(problem.num_rows());
  std::vector<AttentionArgs> chunks;
  for (std::int32_t chunk = 0; chunk < problem.num_chunks(); ++chunk) {
    chunks.push_back(problem.chunk_args(chunk, 0, shape.num_query_tokens));
    chunks.back().out = out.data();
    chunks.back().max = max.data();
    chunks.back().sum = sum.data();
  }
  std::vector<double> seconds;
  for (int run = 0; run < kRuns; ++run) {
    int repeats = 0;
    const double start = now_seconds();
    double elapsed = 0.0;
    do {
      for (const AttentionArgs& args : chunks) table.attention(args);
      ++repeats;
      elapsed = now_seconds() - start;
    } while (elapsed < kSecondsPerRun);
    seconds.push_back(elapsed / repeats);
  }
  std::sort(seconds.begin(), seconds.end());
  return {seconds[kRuns / 2], seconds.front(), seconds.back()};
}

double tolerance_of(const AttentionShape& shape) {
  if (shape.coarser.empty() && shape.format < KvFormat::kQ12) return kTolerance;
  return shape.num_query_tokens > 1 ? kPromptCodesTolerance : kCodesTolerance;
}

// False when the result is wrong.
bool report(const KernelTable& table, const AttentionShape& shape) {
  const AttentionProblem problem(shape);
  const double error = largest_error(problem.run(table.attention, table.attention_merge), problem.dense());
  const double tolerance = tolerance_of(shape);
  if (!(error <= tolerance)) {
    fmt::print(stderr, "wrong by {:.3g} (limit {:.3g}): {}\n", error, tolerance, shape.to_string());
    return false;
  }
  double macs = 0.0;
  for (std::int32_t token = 0; token < shape.num_query_tokens; ++token) {
    macs += 2.0 * (problem.first_position() + token + 1) * shape.group_size * shape.head_dim;
  }
  const KvFormat format = shape.coarser.empty() ? shape.format : shape.coarser.front();
  const double bytes = shape.num_keys / kTokensPerCell * kv::cell_bytes(format, shape.head_dim);
  const Measurement time = measure(table, shape, problem);
  fmt::print("{:>6} {:>6} {:>5} {:>8} {:>6} {:>6} {:>9.1f} {:>7.1f} .. {:<7.1f} {:>8.1f}\n", table.isa,
             kv::name_of(format), shape.num_query_tokens, shape.group_size, shape.head_dim, shape.num_keys,
             macs / time.median_seconds * 1e-9, macs / time.worst_seconds * 1e-9,
             macs / time.best_seconds * 1e-9, bytes / time.median_seconds * 1e-9);
  return true;
}

int run(const char* isa) {
  const KernelTable* table = isa == nullptr ? &best_table() : find_table(isa);
  if (table == nullptr) {
    fmt::print(stderr, "this host cannot run {}\n", isa);
    return 1;
  }
  fmt::print("{:>6} {:>6} {:>5} {:>8} {:>6} {:>6} {:>9} {:>18} {:>8}\n", "isa", "format", "query", "group",
             "head", "keys", "GMAC/s", "worst .. best", "KV GB/s");
  std::vector<AttentionShape> shapes;
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kQ12}) {
    const auto add = [&](std::int32_t num_tokens, std::int32_t group_size, std::int32_t head_dim,
                         std::int32_t num_keys) {
      shapes.push_back({.num_query_tokens = num_tokens,
                        .group_size = group_size,
                        .head_dim = head_dim,
                        .num_keys = num_keys,
                        .format = format});
    };
    for (const auto& [tokens, keys] : {std::pair{512, 512}, {32, 512}, {32, 2048}}) add(tokens, 3, 64, keys);
    for (const std::int32_t head_dim : {128, 256}) add(64, 4, head_dim, 1024);
    for (const std::int32_t group_size : {1, 3, 4, 8}) {
      for (const std::int32_t keys : {512, 2048, 32768}) add(1, group_size, 64, keys);
    }
    add(1, 4, 256, 2048);
  }
  for (const std::int32_t head_dim : {64, 256}) {
    for (int format = static_cast<int>(KvFormat::kF16); format < kv::kNumKvFormats; ++format) {
      const auto of_all = static_cast<KvFormat>(format);
      shapes.push_back({.group_size = head_dim == 64 ? 3 : 4,
                        .head_dim = head_dim,
                        .num_keys = 32768,
                        .format = std::min(of_all, KvFormat::kQ12),
                        .coarser = {of_all}});
    }
  }
  // More than any L3 holds.
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kQ12, KvFormat::kQ8, KvFormat::kK4V4}) {
    shapes.push_back({.group_size = 3,
                      .head_dim = 64,
                      .num_keys = 131072,
                      .format = std::min(format, KvFormat::kQ12),
                      .coarser = {format}});
  }
  bool all_right = true;
  for (const AttentionShape& shape : shapes) all_right = report(*table, shape) && all_right;
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace kvasir::kernels

int main(int argc, char** argv) { return kvasir::kernels::run(argc > 1 ? argv[1] : nullptr); }
