// Time of one draw from a row of logits, beside one pass over the row.
//
//   kvasir_sample_bench [--vocab 49152,262144] [--rounds 200]
//
// Temperature 1, the maxima of tiles known, as the model's last step leaves them. Each row is drawn from with many seeds.
// `peaked`: normal logits of deviation 2, and five that stand out by 14. `flat`: all logits are equal. `greedy` chooses the
// greatest logit of the peaked row, so it shows what does not draw. `sum`: no draw, but the sum of e^logit of the peaked row.
// Checks first that a draw is repeated. Microseconds, the least and the median. Exit codes: 0, 1 (draws differ), 2 (usage).
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "sampling/sampler.h"

namespace kvasir::sampling {
namespace {

constexpr std::size_t kTile = LogitRow::kTileSize;

struct Case {
  std::string_view name;
  SamplingParams params;
  bool is_flat = false;
};

std::vector<float> row_of(const Case& one, std::size_t size) {
  std::vector<float> logits(size, 1.0f);
  if (one.is_flat) return logits;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 2.0f);
  for (float& logit : logits) logit = normal(random);
  for (int i = 0; i < 5; ++i) logits[random() % size] += 14.0f;
  return logits;
}

std::vector<float> maxima_of(std::span<const float> logits) {
  std::vector<float> maxima;
  for (std::size_t i = 0; i < logits.size(); i += kTile) {
    maxima.push_back(std::ranges::max(logits.subspan(i, std::min(kTile, logits.size() - i))));
  }
  return maxima;
}

class Row {
 public:
  Row(const Case& one, std::size_t size) : params_(one.params), logits_(row_of(one, size)), maxima_(maxima_of(logits_)) {}

  TokenId draw(std::uint64_t seed) {
    const auto output = sample({.logits = logits_,
                                .tile_maxima = maxima_,
                                .params = params_,
                                .prompt = {},
                                .generated = {},
                                .suppressed = {},
                                .allowed = AllowedTokens::all(),
                                .seed = seed},
                               scratch_);
    return output ? output->token : kNoToken;
  }

  double sum() {
    scratch_.row.assign(logits_, maxima_);
    return scratch_.row.sum_exp(1.0f, scratch_.tile_sums);
  }

 private:
  SamplingParams params_;
  std::vector<float> logits_, maxima_;
  SamplerScratch scratch_;
};

struct Times {
  double least = 0.0, median = 0.0;
};

template <typename Run>
Times times_of(int num_rounds, const Run& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < num_rounds; ++i) {
    const auto begin = Clock::now();
    run(static_cast<std::uint64_t>(i));
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::ranges::sort(times);
  return {.least = times.front(), .median = times[times.size() / 2]};
}

bool measure(const Case& one, std::size_t size, int num_rounds) {
  Row row(one, size);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    if (row.draw(seed) != row.draw(seed)) return false;
  }
  const Times times = times_of(num_rounds, [&](std::uint64_t seed) { row.draw(seed); });
  fmt::print("{:>7}   {:<14} {:>8.1f} {:>8.1f}\n", size, one.name, times.least, times.median);
  return true;
}

void measure_sum(std::size_t size, int num_rounds) {
  Row row({.name = "sum", .params = {}}, size);
  double total = 0.0;
  const Times times = times_of(num_rounds, [&](std::uint64_t) { total += row.sum(); });
  if (total > 0.0) fmt::print("{:>7}   {:<14} {:>8.1f} {:>8.1f}\n", size, "sum", times.least, times.median);
}

std::vector<std::size_t> numbers_of(const char* list) {
  std::vector<std::size_t> numbers;
  for (char* end = nullptr; *list != '\0'; list = *end == ',' ? end + 1 : end) {
    numbers.push_back(std::strtoul(list, &end, 10));
    if (end == list || numbers.back() == 0) return {};
  }
  return numbers;
}

int main_of(std::span<char*> arguments) {
  std::vector<std::size_t> sizes = {49'152, 262'144};
  int num_rounds = 200;
  bool is_right = arguments.size() % 2 == 1;
  for (std::size_t i = 1; i + 1 < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--vocab") {
      sizes = numbers_of(arguments[i + 1]);
    } else if (name == "--rounds") {
      num_rounds = std::atoi(arguments[i + 1]);
    } else {
      is_right = false;
    }
  }
  if (!is_right || sizes.empty() || num_rounds < 1) {
    fmt::print(stderr, "usage: kvasir_sample_bench [--vocab N,N] [--rounds N]\n");
    return 2;
  }
  const Case cases[] = {{.name = "greedy", .params = {.temperature = 0.0f}},
                        {.name = "peaked", .params = {}},
                        {.name = "flat", .params = {}, .is_flat = true},
                        {.name = "peaked, top_p", .params = {.top_p = 0.95f}},
                        {.name = "flat, top_p", .params = {.top_p = 0.95f}, .is_flat = true},
                        {.name = "flat, top_k", .params = {.top_k = 40}, .is_flat = true}};
  fmt::print("  vocab   row               least   median  us\n");
  for (const std::size_t size : sizes) {
    measure_sum(size, num_rounds);
    for (const Case& one : cases) {
      if (!measure(one, size, num_rounds)) return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace kvasir::sampling

int main(int argc, char** argv) { return kvasir::sampling::main_of({argv, static_cast<std::size_t>(argc)}); }
