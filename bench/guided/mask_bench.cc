// Whether exactly the valid instances of MaskBench's schemas are accepted, and how long masks take.
//
//   kvasir_mask_bench [--model MODEL] [--every N] [--repeat N] [--failures] [--slow US] [--slow-compile MS] FILE
//
// FILE has lines of JSON: {"name", "schema", "tests": [{"valid", "data"}]}. Without a model each byte is a token.
// --every N takes the first of N lines, --slow lists masks that take longer, --slow-compile schemas. Times are processor
// time of the thread, without what the clock takes. Exit code 1: an invalid instance was accepted, or a mask and a
// token's acceptance differ.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/open_model.h"
#include "grammar/bench/mask_bench.h"
#include "grammar/token_vocabulary.h"
#include "store/model_store.h"

namespace {

using kvasir::Result;
using kvasir::TokenId;
using namespace kvasir::grammar;

struct Arguments {
  std::string model;
  std::string file;
  int every = 1;
  int repeat = 3;
  double slow_us = 1e9;
  double slow_ms = 1e9;
  bool failures = false;
};

std::int64_t thread_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--failures") {
      arguments.failures = true;
    } else if (argument.starts_with("--") && i + 1 < argc) {
      const char* value = argv[++i];
      if (argument == "--model") arguments.model = value;
      if (argument == "--every") arguments.every = std::max(1, std::atoi(value));
      if (argument == "--slow") arguments.slow_us = std::atof(value);
      if (argument == "--slow-compile") arguments.slow_ms = std::atof(value);
      if (argument == "--repeat") arguments.repeat = std::max(1, std::atoi(value));
    } else {
      arguments.file = argument;
    }
  }
  return arguments;
}

std::shared_ptr<const Vocabulary> byte_vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

std::vector<TokenId> bytes_of(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

void print(std::string_view name, const TimeSpread& spread) {
  fmt::print("{:<16} n {:>8}  p50 {:>9.2f}  p90 {:>9.2f}  p99 {:>10.2f}  max {:>11.2f}  sum {:>14.1f}\n", name,
             spread.count, spread.p50, spread.p90, spread.p99, spread.max, spread.sum);
}

void print(const MaskBenchReport& report, bool with_failures) {
  if (with_failures) {
    for (const MaskBenchFailure& failure : report.failures) {
      fmt::print("{} {} [{}]: {:.200}\n", failure.kind, failure.name, failure.test, failure.detail);
    }
  }
  for (const MaskBenchFailure& slow : report.slow) fmt::print("slow {} [{}]: {}\n", slow.name, slow.test, slow.detail);
  print("mask us", report.mask_us);
  print("mask us, first", report.first_mask_us);
  print("accept us", report.accept_us);
  print("accept us, first", report.first_accept_us);
  print("compile ms", report.compile_ms);
  fmt::print("one token {:.1f}% of masks, at most 255 {:.1f}%\n", 100 * report.forced_share,
             100 * report.few_logits_share);
  fmt::print(
      "{} schemas, {} passed, {} refused, {} wrong accepts, {} wrong refusals, {} disagreements, {} timed out\n",
      report.schemas, report.passed, report.refused, report.wrong_accepts, report.wrong_refusals,
      report.disagreements, report.timed_out);
}

Result<MaskBench> make_bench(const Arguments& arguments, std::unique_ptr<kvasir::text::Tokenizer>& tokenizer) {
  const MaskBenchOptions options = {.num_repeats = arguments.repeat, .slow_us = arguments.slow_us,
                                    .slow_ms = arguments.slow_ms, .thread_ns = thread_ns};
  if (arguments.model.empty()) return MaskBench(byte_vocabulary(), bytes_of, options);
  KVASIR_TRY(const std::string path, kvasir::store::resolve_model(arguments.model));
  KVASIR_TRY(tokenizer, kvasir::open_tokenizer(path));
  const auto encode = [&tokenizer](std::string_view text) { return tokenizer->encode(text, {.add_special = false}); };
  const std::int64_t begin = thread_ns();
  const auto vocabulary = make_vocabulary(*tokenizer);
  fmt::print("{} tokens, {:.0f} ms\n", vocabulary->num_tokens(), static_cast<double>(thread_ns() - begin) * 1e-6);
  return MaskBench(vocabulary, encode, options);
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse_arguments(argc, argv);
  if (arguments.file.empty()) {
    std::fputs("usage: kvasir_mask_bench [--model MODEL] [--every N] [--repeat N] [--failures] [--slow US]\n                         [--slow-compile MS] FILE\n", stderr);
    return 2;
  }
  std::ifstream file(arguments.file);
  if (!file) {
    std::fprintf(stderr, "kvasir_mask_bench: %s: cannot be read\n", arguments.file.c_str());
    return 3;
  }
  std::unique_ptr<kvasir::text::Tokenizer> tokenizer;
  Result<MaskBench> bench = make_bench(arguments, tokenizer);
  if (!bench) {
    std::fprintf(stderr, "kvasir_mask_bench: %s\n", bench.error().message.c_str());
    return 3;
  }
  int num_lines = 0;
  for (std::string line; std::getline(file, line);) {
    if (num_lines++ % arguments.every != 0) continue;
    const auto bench_case = parse_mask_bench_case(line);
    if (!bench_case) {
      std::fprintf(stderr, "kvasir_mask_bench: line %d: %s\n", num_lines, bench_case.error().message.c_str());
      return 3;
    }
    bench->run(*bench_case);
  }
  const MaskBenchReport report = bench->report();
  print(report, arguments.failures);
  return report.wrong_accepts + report.disagreements == 0 ? 0 : 1;
}
