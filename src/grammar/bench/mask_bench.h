// MaskBench: whether exactly the valid instances of JSON Schemas pass, and how long masks take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/bitmask.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/vocabulary.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

struct MaskBenchCase {
  struct Test {
    bool is_valid = false;
    std::string text;  // the instance
  };
  std::string name;
  std::string schema;
  std::vector<Test> tests;
};

// {"name", "schema", "tests": [{"valid", "data"}]}; an instance is the bytes of `data` as they stand in the line.
// Error (kUsage): the line is no such object.
Result<MaskBenchCase> parse_mask_bench_case(std::string_view line);

struct MaskBenchOptions {
  int num_repeats = 3;     // grammars of one schema; a position counts with its least time
  double timeout_s = 10;   // of one schema, all repeats together
  double slow_us = 1e9;    // masks whose least time is longer are listed
  double slow_ms = 1e9;    // schemas that take longer to compile are listed
  std::function<std::int64_t()> thread_ns;  // processor time of the calling thread; required
};

// A distribution of times.
struct TimeSpread {
  std::size_t count = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
  double sum = 0;
};

struct MaskBenchFailure {
  std::string name;
  std::string kind;  // refused, wrong_accept, wrong_refusal, disagreement, timeout, slow
  std::size_t test = 0;
  std::string detail;
};

struct MaskBenchReport {
  std::size_t schemas = 0;
  std::size_t passed = 0;
  std::size_t refused = 0;
  std::size_t wrong_accepts = 0;
  std::size_t wrong_refusals = 0;
  std::size_t disagreements = 0;  // a token in the mask is not accepted, or the other way round
  std::size_t timed_out = 0;
  std::size_t instances = 0;
  TimeSpread mask_us;          // the least of the repeats
  TimeSpread first_mask_us;    // the first grammar of each schema
  TimeSpread accept_us;
  TimeSpread first_accept_us;
  TimeSpread compile_ms;
  double forced_share = 0.0;      // masks with one token
  double few_logits_share = 0.0;  // masks with at most 255
  std::vector<MaskBenchFailure> failures;
  std::vector<MaskBenchFailure> slow;
};

// Runs schema by schema. Masks are those of the instance's own tokens; an instance passes when every token is in its
// mask and the end is allowed behind the last. Each repeat has a fresh grammar; the vocabulary's atlas stays.
//
// Thread safety: none.
class MaskBench {
 public:
  using Encode = std::function<std::vector<TokenId>(std::string_view text)>;

  // `encode` tokenises an instance as a text of its own.
  MaskBench(std::shared_ptr<const Vocabulary> vocabulary, Encode encode, MaskBenchOptions options);

  void run(const MaskBenchCase& bench_case);
  MaskBenchReport report() const;

 private:
  struct Position {
    std::int64_t mask_ns = 0;
    std::int64_t accept_ns = 0;
  };
  enum class Verdict : std::uint8_t { kAccepted, kRefused, kDisagreement };

  void run_once(const MaskBenchCase& bench_case, const std::vector<std::vector<TokenId>>& tokens, bool is_first);
  Verdict judge(const std::shared_ptr<const CompiledGrammar>& grammar, const std::vector<TokenId>& tokens,
                bool is_first);
  void note_slow(const MaskBenchCase& bench_case, const std::vector<std::vector<TokenId>>& tokens);
  void note_count(std::int32_t count);
  std::int64_t elapsed(std::int64_t begin_ns) const;
  void fail(const MaskBenchCase& bench_case, std::string kind, std::size_t test, std::string detail);

  std::shared_ptr<const Vocabulary> vocabulary_;
  Encode encode_;
  MaskBenchOptions options_;
  std::int64_t clock_ns_ = 0;  // of asking the clock
  TokenMask mask_;
  MaskBenchReport report_;
  std::size_t num_forced_ = 0;
  std::size_t num_few_ = 0;
  std::vector<Position> run_;    // of the repeat at hand
  std::vector<Position> least_;  // of the schema at hand
  std::vector<std::size_t> begins_;  // of its instances' positions
  std::int64_t least_compile_ns_ = 0;
  bool is_right_ = true;
  bool is_refused_ = false;
  std::vector<double> mask_us_;
  std::vector<double> first_mask_us_;
  std::vector<double> accept_us_;
  std::vector<double> first_accept_us_;
  std::vector<double> compile_ms_;
};

}  // namespace kvasir::grammar
