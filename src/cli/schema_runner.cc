#include "cli/schema_runner.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string_view>
#include <utility>

#include "base/gzip.h"
#include "base/json_writer.h"
#include "base/progress_reporter.h"
#include "base/text_file.h"
#include "cli/input_file.h"
#include "cli/standard_output.h"
#include "engine/open_model.h"
#include "grammar/bench/mask_bench.h"
#include "grammar/token_vocabulary.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

using grammar::MaskBench;
using grammar::MaskBenchCase;
using grammar::MaskBenchFailure;
using grammar::MaskBenchReport;

constexpr std::size_t kMaxCasesBytes = std::size_t{2} << 30;

std::int64_t thread_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<std::string> read_cases(const std::string& path) {
  KVASIR_TRY(std::string bytes, read_file(path, kMaxCasesBytes));
  if (!is_gzip(bytes)) return bytes;
  auto contents = gunzip(bytes, kMaxCasesBytes);
  if (!contents) return make_error(contents.error().kind, path + ": " + contents.error().message);
  return contents;
}

// The lines of the cases that are wanted, with their numbers.
Result<std::vector<MaskBenchCase>> parse_cases(const SchemaTestOptions& options) {
  KVASIR_TRY(const std::string text, read_cases(options.cases));
  std::vector<MaskBenchCase> cases;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto parsed = grammar::parse_mask_bench_case(line);
    if (!parsed) {
      return make_error(ErrorKind::kBadFile, fmt::format("{}, line {}: {}", options.cases, number, parsed.error().message));
    }
    if (options.only.empty() || std::ranges::find(options.only, parsed->name) != options.only.end()) {
      cases.push_back(std::move(*parsed));
    }
  }
  if (cases.empty()) return make_error(ErrorKind::kBadFile, options.cases + ": there is no such case");
  return cases;
}

enum class Fate : std::uint8_t { kEnded, kCrashed, kTimedOut };

// Runs the case in a process of its own first: what crashes or hangs there is not run here.
Fate try_apart(MaskBench& bench, const MaskBenchCase& one, double timeout_s) {
  int ends[2];
  if (::pipe(ends) != 0) return Fate::kEnded;
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    bench.run(one);
    ::_exit(0);
  }
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    return Fate::kEnded;
  }
  // The pipe closes when the process ends. Twice the limit, for the machine may have other work.
  pollfd waiting = {.fd = ends[0], .events = POLLIN, .revents = 0};
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(2 * timeout_s + 1);
  int num_ready = 0;
  while (num_ready <= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    num_ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000)));
  }
  if (num_ready <= 0) ::kill(child, SIGKILL);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (num_ready <= 0) return Fate::kTimedOut;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? Fate::kEnded : Fate::kCrashed;
}

struct TestRun {
  MaskBenchReport report;
  std::size_t num_crashed = 0;
  std::int32_t vocab_size = 0;
};

Result<TestRun> run_cases(const SchemaTestOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const std::vector<MaskBenchCase> cases, parse_cases(options));
  KVASIR_TRY(const std::string path, store::resolve_model(options.model));
  KVASIR_TRY(const auto tokenizer, open_tokenizer(path));
  const auto encode = [&](std::string_view text) { return tokenizer->encode(text, {.add_special = false}); };
  MaskBench bench(grammar::make_vocabulary(*tokenizer), encode,
                  {.num_repeats = options.num_repeats, .timeout_s = options.timeout_s, .thread_ns = thread_ns});
  TestRun run = {.report = {}, .vocab_size = tokenizer->vocab().num_tokens()};
  std::vector<MaskBenchFailure> lost;
  ProgressReporter progress({.quiet = globals.quiet});
  std::size_t num_done = 0;
  for (const MaskBenchCase& one : cases) {
    const Fate fate = try_apart(bench, one, options.timeout_s);
    if (fate == Fate::kEnded) {
      bench.run(one);
    } else {
      const bool is_crash = fate == Fate::kCrashed;
      lost.push_back({one.name, is_crash ? "crash" : "timeout", 0,
                      is_crash ? "the process ended" : fmt::format("more than {:g} s", options.timeout_s)});
    }
    progress.report_fraction("schemas", static_cast<double>(++num_done) / static_cast<double>(cases.size()));
  }
  progress.clear();
  run.report = bench.report();
  run.report.schemas += lost.size();
  for (MaskBenchFailure& failure : lost) {
    ++(failure.kind == "crash" ? run.num_crashed : run.report.timed_out);
    run.report.failures.push_back(std::move(failure));
  }
  return run;
}

void write_spread(JsonWriter& json, std::string_view name, const grammar::TimeSpread& spread) {
  json.key(name).begin_object();
  json.member("p50", spread.p50).member("p99", spread.p99).member("max", spread.max).end_object();
}

void write_failure(JsonWriter& json, const MaskBenchFailure& failure) {
  json.begin_object().member("name", failure.name).member("kind", failure.kind);
  json.member("test", failure.test).member("detail", failure.detail).end_object();
}

std::string run_document(const TestRun& run) {
  const MaskBenchReport& report = run.report;
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("vocab_size", run.vocab_size).member("schemas", report.schemas);
  json.member("passed", report.passed).member("refused", report.refused);
  json.member("wrong_accepts", report.wrong_accepts).member("wrong_refusals", report.wrong_refusals);
  json.member("disagreements", report.disagreements).member("crashed", run.num_crashed);
  json.member("timed_out", report.timed_out).member("instances", report.instances);
  json.member("masks", report.mask_us.count);
  write_spread(json, "mask_us", report.mask_us);
  write_spread(json, "accept_us", report.accept_us);
  write_spread(json, "compile_ms", report.compile_ms);
  json.member("forced_share", report.forced_share).member("few_logits_share", report.few_logits_share);
  json.key("failures").begin_array();
  for (const MaskBenchFailure& failure : report.failures) write_failure(json, failure);
  json.end_array().end_object();
  return out;
}

std::string run_text(const TestRun& run) {
  const MaskBenchReport& report = run.report;
  const auto line = [](std::string_view name, const grammar::TimeSpread& spread, std::string_view unit) {
    return fmt::format("{:<8} p50 {:>8.2f}  p99 {:>9.2f}  max {:>10.2f} {}\n", name, spread.p50, spread.p99, spread.max, unit);
  };
  return fmt::format("{} of {} schemas pass ({:.1f}%): {} refused, {} wrong accepts, {} wrong refusals, {} crashed, {} timed out\n",
                     report.passed, report.schemas,
                     100.0 * static_cast<double>(report.passed) / static_cast<double>(std::max<std::size_t>(report.schemas, 1)),
                     report.refused, report.wrong_accepts, report.wrong_refusals, run.num_crashed, report.timed_out) +
         line("mask", report.mask_us, "us") + line("accept", report.accept_us, "us") +
         line("compile", report.compile_ms, "ms") +
         fmt::format("{} masks of {} tokens: {:.1f}% allow one token, {:.1f}% at most 255\n", report.mask_us.count,
                     run.vocab_size, 100 * report.forced_share, 100 * report.few_logits_share);
}

Status write_failures(const std::string& path, const std::vector<MaskBenchFailure>& failures) {
  std::string lines;
  for (const MaskBenchFailure& failure : failures) {
    std::string line;
    JsonWriter json(line);
    write_failure(json, failure);
    lines += line + '\n';
  }
  return replace_text_file(path, lines);
}

}  // namespace

Result<int> test_schemas(const SchemaTestOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const TestRun run, run_cases(options, globals));
  if (!options.failures.empty()) KVASIR_CHECKED(write_failures(options.failures, run.report.failures));
  const bool is_right = run.report.wrong_accepts == 0 && run.report.disagreements == 0 && run.num_crashed == 0;
  const int exit_code = is_right ? kExitDone : kExitNo;
  if (globals.json) return print_document(run_document(run), exit_code);
  print(run_text(run));
  return finish_output(exit_code);
}

}  // namespace kvasir::cli
