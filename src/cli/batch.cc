// kvasir batch: a file of requests, answered as fast as the machine can.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "cli/batch_file.h"
#include "cli/draft_options.h"
#include "cli/engine_options.h"
#include "cli/interruption.h"
#include "cli/line_reader.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "server/offline_api.h"

namespace kvasir::cli {
namespace {

struct BatchOptions {
  std::string model, in, out;
  EngineOptions engine;
  KvParams kv;
  std::int32_t max_batch = 16;
  std::int32_t max_wait_ms = 0;
  std::int32_t max_tokens = 0;
  bool resume = false;
};

struct BatchCounts {
  std::int64_t num_answered = 0;
  std::int64_t num_refused = 0;  // of them, with a status of 400 and more
  std::int64_t num_skipped = 0;  // had an answer from an earlier run
  std::int64_t num_bad_lines = 0;
};

constexpr std::chrono::milliseconds kLook{100};

// Keeps `max_in_flight` requests in the engine. The main thread asks; answers come on another.
class BatchRun {
 public:
  BatchRun(Engine& engine, const BatchOptions& options, BatchOutput& output)
      : output_(output),
        // As many again wait, so that a seat that is free is taken at once.
        max_in_flight_(2 * options.max_batch),
        api_(engine, options.model, options.kv) {}

  void ask(BatchRequest batch) {
    {
      const std::lock_guard lock(mutex_);
      ++num_in_flight_;
    }
    server::http::Request request = batch.request;
    api_.ask(std::move(request), [this, batch = std::move(batch)](const server::http::Response& response) {
      take(batch, response);
    });
  }

  // Waits until `most` are left or the time is over; true when so few are, or a failure ended the run.
  bool wait_for(std::int32_t most, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return num_in_flight_ <= most || failure_; });
  }
  bool has_room() { return wait_for(max_in_flight_ - 1, kLook); }

  // Requests that end from now on were only cancelled, so their answers are dropped.
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  BatchCounts counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  std::optional<Error> failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  void take(const BatchRequest& batch, const server::http::Response& response) {
    const std::lock_guard lock(mutex_);
    --num_in_flight_;
    changed_.notify_all();
    if (is_closed_ || failure_) return;
    if (const Status written = output_.write(batch, response); !written) {
      failure_ = written.error();
      return;
    }
    ++counts_.num_answered;
    counts_.num_refused += response.status >= 400 ? 1 : 0;
  }

  BatchOutput& output_;
  const std::int32_t max_in_flight_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded, as what output_ writes to.
  std::int32_t num_in_flight_ = 0;
  bool is_closed_ = false;
  BatchCounts counts_;
  std::optional<Error> failure_;

  server::OfflineApi api_;  // last: it ends its thread first
};

int print_batch_summary(const BatchCounts& counts, const EngineStats& stats, double seconds,
                        const GlobalOptions& globals, int exit_code) {
  const double rate = static_cast<double>(stats.num_generated_tokens) / seconds;
  if (!globals.json) {
    say(fmt::format(
        "{} answered ({} refused), {} answered before, {} bad lines: {} prompt and {} generated tokens "
        "in {:.1f} s, {:.0f} tokens/s",
        counts.num_answered, counts.num_refused, counts.num_skipped, counts.num_bad_lines,
        stats.num_prompt_tokens, stats.num_generated_tokens, seconds, rate));
    return exit_code;
  }
  std::string out;
  JsonWriter(out, JsonWriter::Style::kPretty)
      .begin_object()
      .member("answered", counts.num_answered)
      .member("refused", counts.num_refused)
      .member("skipped", counts.num_skipped)
      .member("bad_lines", counts.num_bad_lines)
      .member("prompt_tokens", stats.num_prompt_tokens)
      .member("completion_tokens", stats.num_generated_tokens)
      .member("seconds", seconds)
      .member("tokens_per_s", rate)
      .end_object();
  return print_document(std::move(out), exit_code);
}

// Asks for every line that has no answer yet. A line that is no request is said and left out.
BatchCounts ask_all(LineReader& input, const BatchOptions& options, const BatchOutput& output, BatchRun& run,
                    Interruption& interruption, ProgressReporter& progress) {
  BatchCounts counts;
  std::unordered_map<std::string, std::int64_t> lines;  // by what names their answer
  std::string line;
  for (std::int64_t number = 0; !interruption.requested() && !run.failure();) {
    progress.report_bytes(fmt::format("batch, {} answered", run.counts().num_answered), input.read_bytes(),
                          input.total_bytes());
    if (!run.has_room()) continue;
    const LineReader::Outcome outcome = input.next(line, kLook);
    if (outcome == LineReader::Outcome::kEnd) break;
    if (outcome == LineReader::Outcome::kNothingYet) continue;
    ++number;
    if (outcome == LineReader::Outcome::kTooLong) {
      ++counts.num_bad_lines;
      progress.note(fmt::format("kvasir: {}:{}: a line of more than {} bytes", printable_line(options.in), number,
                                LineReader::kMaxLineBytes));
      continue;
    }
    if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // a byte order mark
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto request = parse_batch_line(line, number, options.max_tokens);
    if (request) {
      const auto [first, is_new] = lines.emplace(request->custom_id, number);
      if (!is_new) {
        request =
            make_error(ErrorKind::kBadFile, fmt::format("custom_id {} is that of line {}",
                                                        printable_line(request->custom_id), first->second));
      }
    }
    if (!request) {
      ++counts.num_bad_lines;
      progress.note(
          fmt::format("kvasir: {}:{}: {}", printable_line(options.in), number, request.error().message));
    } else if (output.has(request->custom_id)) {
      ++counts.num_skipped;
    } else {
      run.ask(std::move(*request));
    }
  }
  return counts;
}

Result<int> run_batch(BatchOptions options, const GlobalOptions& globals) {
  Interruption interruption;
  std::error_code unknown;  // of a file that is not there yet
  if (std::filesystem::equivalent(options.in, options.out, unknown)) {
    return make_error(ErrorKind::kUsage, fmt::format("{} is IN and OUT", printable_line(options.in)), "OUT");
  }
  KVASIR_TRY(LineReader input, LineReader::open(options.in));
  KVASIR_TRY(BatchOutput output, BatchOutput::open(options.out, options.resume));
  options.engine.max_num_seqs = options.max_batch;
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  config.max_queued_requests = 1 << 20;  // the run bounds them itself
  config.gather_ms = options.max_wait_ms;
  KVASIR_TRY(const ModelSession session,
             open_session(options.model, config, globals, &interruption.signals()));
  const auto began = std::chrono::steady_clock::now();
  BatchRun run(*session.engine, options, output);
  ProgressReporter progress({.quiet = globals.quiet});
  const BatchCounts lines = ask_all(input, options, output, run, interruption, progress);
  while (!run.wait_for(0, kLook) && !interruption.requested()) {
    progress.report_fraction(fmt::format("batch, {} answered", run.counts().num_answered), 1.0);
  }
  progress.clear();
  run.close();
  session.engine->drain(0);  // ends what an interruption left
  if (const auto failure = run.failure()) return std::unexpected(*failure);
  BatchCounts counts = run.counts();
  counts.num_skipped = lines.num_skipped;
  counts.num_bad_lines = lines.num_bad_lines;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const bool is_whole = counts.num_refused == 0 && counts.num_bad_lines == 0;
  const int exit_code = interruption.requested() ? kExitInterrupted : is_whole ? kExitDone : kExitNo;
  return print_batch_summary(counts, session.engine->stats(), seconds, globals, exit_code);
}

}  // namespace

void add_batch(CLI::App& app, Context& context) {
  auto options = std::make_shared<BatchOptions>();
  CLI::App* verb = app.add_subcommand("batch", "Answer a file of requests (JSON lines)");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("IN", options->in, "Requests: OpenAI's batch lines, or bodies alone; - for standard input")
      ->required();
  verb->add_option("OUT", options->out, "File for the answers, in the order in which they are ready")
      ->required();
  verb->add_option("--max-batch", options->max_batch, "Sequences that run at once")
      ->transform(whole_number(1, 4096))
      ->capture_default_str();
  verb->add_option("--max-batch-tokens", options->engine.max_num_batched_tokens,
                   "Tokens of one step (0: 512, and up to 2048 for a mixture of experts)")
      ->transform(whole_number(0, 1 << 16));
  verb->add_option("--max-wait-ms", options->max_wait_ms,
                   "Milliseconds that the first request after a pause waits for others to be batched with")
      ->transform(whole_number(0, 3'600'000))
      ->capture_default_str();
  verb->add_option("--max-tokens", options->max_tokens,
                   "Most tokens of an answer whose request sets no limit (0: the context)")
      ->transform(whole_number(0, kMaxLengthTokens));
  verb->add_flag("--resume", options->resume, "Go on with OUT: requests that it answers are left out");
  add_context_option(*verb, options->engine, "--max-model-len,--ctx");
  add_kv_type_option(*verb, options->engine);
  add_kv_policy_options(*verb, options->kv);
  add_chat_template_option(*verb, options->engine);
  add_weight_options(*verb, options->engine);
  add_speculate_option(*verb, options->engine, "auto");
  on_chosen(*verb, context, [options, &context] { return run_batch(*options, context.options); });
}

}  // namespace kvasir::cli
