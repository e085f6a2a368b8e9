#include "grammar/bench/mask_bench.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "grammar/schema/json_schema.h"

namespace kvasir::grammar {
namespace {

constexpr std::int32_t kFewTokens = 255;

Result<std::shared_ptr<const CompiledGrammar>> compile_schema(std::string_view schema,
                                                              const std::shared_ptr<const Vocabulary>& vocabulary) {
  auto store = std::make_unique<TermStore>();
  KVASIR_TRY(SchemaGrammar made, grammar_from_schema(*store, schema));
  return CompiledGrammar::create(std::move(store), std::move(made.grammar), vocabulary);
}

TimeSpread spread_of(std::vector<double> times) {
  if (times.empty()) return {};
  std::ranges::sort(times);
  const auto at = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<std::size_t>(share * static_cast<double>(times.size())))];
  };
  return {.count = times.size(), .p50 = at(0.5), .p90 = at(0.9), .p99 = at(0.99), .max = times.back(),
          .sum = std::accumulate(times.begin(), times.end(), 0.0)};
}

double to_us(std::int64_t ns) { return static_cast<double>(ns) * 1e-3; }

}  // namespace

Result<MaskBenchCase> parse_mask_bench_case(std::string_view line) {
  const auto wrong = [](simdjson::error_code error) {
    return make_error(ErrorKind::kUsage, fmt::format("a case is {{name, schema, tests: [{{valid, data}}]}}: {}",
                                                     simdjson::error_message(error)));
  };
  simdjson::ondemand::parser parser;
  const simdjson::padded_string padded(line);
  simdjson::ondemand::document document;
  if (const auto error = parser.iterate(padded).get(document)) return wrong(error);
  MaskBenchCase result;
  std::string_view text;
  if (const auto error = document["name"].get_string().get(text)) return wrong(error);
  result.name = text;
  if (const auto error = simdjson::to_json_string(document["schema"]).get(text)) return wrong(error);
  result.schema = text;
  simdjson::ondemand::array tests;
  if (const auto error = document["tests"].get_array().get(tests)) return wrong(error);
  for (auto test : tests) {
    bool is_valid = false;
    if (const auto error = test["valid"].get_bool().get(is_valid)) return wrong(error);
    if (const auto error = simdjson::to_json_string(test["data"]).get(text)) return wrong(error);
    while (!text.empty() && std::string_view(" \t\r\n").contains(text.back())) text.remove_suffix(1);
    result.tests.push_back({is_valid, std::string(text)});
  }
  return result;
}

MaskBench::MaskBench(std::shared_ptr<const Vocabulary> vocabulary, Encode encode, MaskBenchOptions options)
    : vocabulary_(std::move(vocabulary)),
      encode_(std::move(encode)),
      options_(std::move(options)),
      mask_(vocabulary_->num_tokens()) {
  clock_ns_ = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t begin = options_.thread_ns();
    clock_ns_ = std::min(clock_ns_, options_.thread_ns() - begin);
  }
}

std::int64_t MaskBench::elapsed(std::int64_t begin_ns) const {
  return std::max<std::int64_t>(options_.thread_ns() - begin_ns - clock_ns_, 0);
}

void MaskBench::fail(const MaskBenchCase& bench_case, std::string kind, std::size_t test, std::string detail) {
  is_right_ = false;
  report_.failures.push_back({bench_case.name, std::move(kind), test, std::move(detail)});
}

void MaskBench::note_count(std::int32_t count) {
  num_forced_ += count == 1 ? 1 : 0;
  num_few_ += count <= kFewTokens ? 1 : 0;
}

MaskBench::Verdict MaskBench::judge(const std::shared_ptr<const CompiledGrammar>& grammar,
                                    const std::vector<TokenId>& tokens, bool is_first) {
  GrammarMatcher matcher(grammar);
  for (const TokenId token : tokens) {
    std::int64_t begin = options_.thread_ns();
    matcher.fill(mask_);
    Position position = {.mask_ns = elapsed(begin)};
    if (is_first) note_count(mask_.count());
    const bool is_allowed = mask_.test(token);
    begin = options_.thread_ns();
    const bool is_accepted = matcher.accept(token);
    position.accept_ns = elapsed(begin);
    run_.push_back(position);
    if (is_accepted != is_allowed) return Verdict::kDisagreement;
    if (!is_accepted) return Verdict::kRefused;
  }
  return matcher.is_accepting() ? Verdict::kAccepted : Verdict::kRefused;
}

void MaskBench::note_slow(const MaskBenchCase& bench_case, const std::vector<std::vector<TokenId>>& tokens) {
  for (std::size_t test = 0; test < begins_.size(); ++test) {
    const std::size_t end = test + 1 < begins_.size() ? begins_[test + 1] : least_.size();
    std::string text;
    for (std::size_t at = begins_[test]; at < end; ++at) {
      const double mask_us = to_us(least_[at].mask_ns);
      if (mask_us > options_.slow_us) {
        const std::size_t begin = text.size() > 60 ? text.size() - 60 : 0;
        report_.slow.push_back(
            {bench_case.name, "slow", test, fmt::format("{:.1f} us behind {}", mask_us, text.substr(begin))});
      }
      text += vocabulary_->text(tokens[test][at - begins_[test]]);
    }
  }
}

void MaskBench::run_once(const MaskBenchCase& bench_case, const std::vector<std::vector<TokenId>>& tokens,
                         bool is_first) {
  const std::int64_t begin = options_.thread_ns();
  const auto grammar = compile_schema(bench_case.schema, vocabulary_);
  const std::int64_t compile_ns = elapsed(begin);
  least_compile_ns_ = is_first ? compile_ns : std::min(least_compile_ns_, compile_ns);
  if (!grammar) {
    is_refused_ = true;
    if (is_first) fail(bench_case, "refused", 0, grammar.error().message);
    return;
  }
  for (std::size_t i = 0; i < bench_case.tests.size(); ++i) {
    if (is_first) begins_.push_back(run_.size());
    const Verdict verdict = judge(*grammar, tokens[i], is_first);
    if (!is_first) continue;
    const MaskBenchCase::Test& test = bench_case.tests[i];
    if (verdict == Verdict::kDisagreement) {
      ++report_.disagreements;
      fail(bench_case, "disagreement", i, test.text);
    } else if ((verdict == Verdict::kAccepted) != test.is_valid) {
      ++(test.is_valid ? report_.wrong_refusals : report_.wrong_accepts);
      fail(bench_case, test.is_valid ? "wrong_refusal" : "wrong_accept", i, test.text);
    }
  }
}

void MaskBench::run(const MaskBenchCase& bench_case) {
  ++report_.schemas;
  report_.instances += bench_case.tests.size();
  std::vector<std::vector<TokenId>> tokens;
  for (const MaskBenchCase::Test& test : bench_case.tests) tokens.push_back(encode_(test.text));
  is_right_ = true;
  is_refused_ = false;
  begins_.clear();
  const std::int64_t begin = options_.thread_ns();
  for (int repeat = 0; repeat < options_.num_repeats && !is_refused_; ++repeat) {
    run_.clear();
    run_once(bench_case, tokens, repeat == 0);
    if (repeat == 0) {
      for (const Position& position : run_) {
        first_mask_us_.push_back(to_us(position.mask_ns));
        first_accept_us_.push_back(to_us(position.accept_ns));
      }
      least_ = run_;
    }
    for (std::size_t i = 0; i < std::min(run_.size(), least_.size()); ++i) {
      least_[i].mask_ns = std::min(least_[i].mask_ns, run_[i].mask_ns);
      least_[i].accept_ns = std::min(least_[i].accept_ns, run_[i].accept_ns);
    }
    if (static_cast<double>(elapsed(begin)) * 1e-9 > options_.timeout_s) {
      ++report_.timed_out;
      fail(bench_case, "timeout", 0, fmt::format("more than {:g} s", options_.timeout_s));
      break;
    }
  }
  note_slow(bench_case, tokens);
  for (const Position& position : least_) {
    mask_us_.push_back(to_us(position.mask_ns));
    accept_us_.push_back(to_us(position.accept_ns));
  }
  least_.clear();
  if (is_refused_) {
    ++report_.refused;
  } else {
    compile_ms_.push_back(to_us(least_compile_ns_) * 1e-3);
    if (compile_ms_.back() > options_.slow_ms) {
      report_.slow.push_back({bench_case.name, "slow", 0, fmt::format("{:.2f} ms to compile", compile_ms_.back())});
    }
    report_.passed += is_right_ ? 1 : 0;
  }
}

MaskBenchReport MaskBench::report() const {
  MaskBenchReport report = report_;
  report.mask_us = spread_of(mask_us_);
  report.first_mask_us = spread_of(first_mask_us_);
  report.accept_us = spread_of(accept_us_);
  report.first_accept_us = spread_of(first_accept_us_);
  report.compile_ms = spread_of(compile_ms_);
  const double num_masks = std::max(1.0, static_cast<double>(mask_us_.size()));
  report.forced_share = static_cast<double>(num_forced_) / num_masks;
  report.few_logits_share = static_cast<double>(num_few_) / num_masks;
  return report;
}

}  // namespace kvasir::grammar
