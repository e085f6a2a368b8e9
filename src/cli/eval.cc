// kvasir eval: how good the answers are, measured through the engine that serves them.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "cli/engine_options.h"
#include "cli/eval_gate.h"
#include "cli/eval_hidden.h"
#include "cli/eval_kv.h"
#include "cli/eval_kv_learn.h"
#include "cli/eval_kv_regret.h"
#include "cli/eval_search.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "eval/npy_writer.h"
#include "eval/perplexity.h"
#include "eval/scoring.h"
#include "eval/windows.h"

namespace kvasir::cli {
namespace {

struct EvalOptions {
  std::string model;
  std::string file;
  EngineOptions engine = {.ctx_tokens = 512, .max_num_seqs = 1, .no_prefix_cache = true};
  KvParams kv;                   // ppl
  std::int32_t num_windows = 0;  // ppl: at most so many; 0: all
  std::int64_t num_tokens = 0;   // logits: at most so many; 0: all
  std::string out;               // logits: the .npy file
};

using Windows = std::vector<std::vector<TokenId>>;

struct Measurement {
  ModelSession session;
  Windows windows;
};

// The windows come from the file alone; the engine then has just the room that one of them takes.
Result<Measurement> prepare(const EvalOptions& options, const GlobalOptions& globals, const std::string& text,
                            std::int32_t max_windows, BlockedSignals& signals) {
  KVASIR_TRY(EngineConfig config, make_engine_config(options.engine, globals));
  Measurement measurement;
  KVASIR_TRY(measurement.session,
             open_text_session(options.model, config, globals, &signals, options.engine.kv_log));
  const text::Tokenizer* tokenizer = measurement.session.engine->tokenizer();
  KVASIR_TRY(measurement.windows,
             eval::cut_windows(*tokenizer, text, options.engine.ctx_tokens, max_windows));
  return measurement;
}

int print_perplexity(const eval::Perplexity& result, const EngineStats& stats, const GlobalOptions& globals,
                     int exit_code) {
  if (!globals.json) {
    print(fmt::format("perplexity {:.4f} +- {:.4f} over {} tokens", result.ppl, result.stderr_ppl,
                      result.num_tokens));
    print(result.kv_bytes_share == 1.0
              ? "\n"
              : fmt::format(", {:.1f}% of the bytes of an f16 cache\n", 100 * result.kv_bytes_share));
    return finish_output(exit_code);
  }
  std::string out;
  JsonWriter(out, JsonWriter::Style::kPretty)
      .begin_object()
      .member("ppl", result.ppl)
      .member("stderr", result.stderr_ppl)
      .member("tokens", result.num_tokens)
      .member("nll_sum", result.nll_sum)
      .member("kv_bytes_share", result.kv_bytes_share)
      .member("kv_bytes_peak", stats.kv_bytes_peak)
      .member("hidden_bytes_peak", stats.hidden_bytes_peak)
      .member("prompt_tokens_per_s", static_cast<double>(stats.num_prompt_tokens) / stats.step_seconds_total)
      .end_object();
  return print_document(std::move(out), exit_code);
}

Result<int> measure_ppl(const EvalOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const std::string text, read_input_file(options.file));  // a pipe may let it wait: signals end it
  Interruption interruption;
  KVASIR_TRY(Measurement measurement, prepare(options, globals, text, options.num_windows, interruption.signals()));
  ProgressReporter progress({.quiet = globals.quiet});
  const std::size_t num_windows = measurement.windows.size();
  const auto show = [&](const eval::Perplexity& so_far) {
    progress.report_fraction(fmt::format("ppl {:.3f}", so_far.ppl),
                             static_cast<double>(so_far.num_windows) / static_cast<double>(num_windows));
  };
  KVASIR_TRY(const eval::Perplexity result,
             eval::measure_perplexity(*measurement.session.engine, measurement.windows, options.kv, show,
                                      interruption.keep_going()));
  progress.clear();
  if (result.num_windows < num_windows) {
    say(fmt::format("kvasir: interrupted after {} of {} windows", result.num_windows, num_windows));
    if (result.num_windows == 0) return kExitInterrupted;
  }
  return print_perplexity(result, measurement.session.engine->stats(), globals, interruption.exit_code());
}

// Cuts the last window so that there are at most `num_tokens` rows.
std::int64_t limit_rows(Windows& windows, std::int64_t ctx_tokens, std::int64_t num_tokens) {
  const std::int64_t available = std::ssize(windows) * ctx_tokens;
  if (num_tokens == 0 || num_tokens >= available) return available;
  windows.back().resize(static_cast<std::size_t>(num_tokens - (std::ssize(windows) - 1) * ctx_tokens));
  return num_tokens;
}

Result<int> write_logits(const EvalOptions& options, const GlobalOptions& globals) {
  const std::filesystem::path folder = std::filesystem::path(options.out).parent_path();
  if (std::error_code none; !folder.empty() && !std::filesystem::is_directory(folder, none)) {
    return make_error(ErrorKind::kMachine, fmt::format("--out: {}: no such folder", printable_line(options.out)), "out");
  }
  const std::int64_t ctx = options.engine.ctx_tokens;
  const std::int64_t max_windows = (options.num_tokens + ctx - 1) / ctx;
  KVASIR_TRY(const std::string text, read_input_file(options.file));  // a pipe may let it wait: signals end it
  Interruption interruption;
  KVASIR_TRY(Measurement measurement,
             prepare(options, globals, text, static_cast<std::int32_t>(max_windows), interruption.signals()));
  Engine& engine = *measurement.session.engine;
  const std::int64_t num_rows = limit_rows(measurement.windows, ctx, options.num_tokens);
  const std::int32_t vocab_size = engine.model_info().vocab_size;
  KVASIR_TRY(eval::NpyWriter writer, eval::NpyWriter::create(options.out, vocab_size));
  ProgressReporter progress({.quiet = globals.quiet});
  const auto num_windows = static_cast<double>(measurement.windows.size());
  double num_done = 0;
  for (std::vector<TokenId>& window : measurement.windows) {
    const Status status = eval::observe_logits(
        engine, std::move(window),
        [&writer](std::int32_t /*position*/, std::span<const float> logits) { writer.write_row(logits); },
        interruption.keep_going());
    if (!status && status.error().kind == ErrorKind::kCancelled) break;
    KVASIR_CHECKED(status);
    progress.report_fraction("logits", ++num_done / num_windows);
  }
  KVASIR_CHECKED(writer.close());
  progress.clear();
  if (writer.num_rows() < num_rows) {
    say(fmt::format("kvasir: interrupted after {} of {} tokens", writer.num_rows(), num_rows));
  }
  if (!globals.json) {
    print(fmt::format("{}: float32 [{}, {}]\n", options.out, writer.num_rows(), vocab_size));
    return finish_output(interruption.exit_code());
  }
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("out", options.out)
      .member("tokens", writer.num_rows())
      .member("vocab", vocab_size)
      .end_object();
  return print_document(std::move(out), interruption.exit_code());
}

void add_shared_options(CLI::App& verb, EvalOptions& options) {
  verb.add_option("MODEL", options.model, "Catalogue name, .gguf file or folder")->required();
  verb.add_option("--file", options.file, "The text to measure on")->required();
  verb.add_option("--ctx", options.engine.ctx_tokens, "Tokens of a window")
      ->transform(whole_number(2, kMaxLengthTokens))
      ->capture_default_str();
  add_kv_type_option(verb, options.engine);
  add_weight_options(verb, options.engine);
  add_step_option(verb, options.engine);
  add_prefill_only_option(verb, options.engine);
}

}  // namespace

void add_eval(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("eval", "Measure the model's quality on a text");
  verb->require_subcommand(1);

  auto ppl_options = std::make_shared<EvalOptions>();
  CLI::App* ppl = verb->add_subcommand("ppl", "Perplexity over the second half of each window");
  add_shared_options(*ppl, *ppl_options);
  add_kv_policy_options(*ppl, ppl_options->kv);
  add_kv_log_option(*ppl, ppl_options->engine.kv_log);
  ppl->add_option("--chunks", ppl_options->num_windows, "Only the first so many windows (0: all)")
      ->transform(whole_number(0, kMaxLengthTokens))
      ->capture_default_str();
  on_chosen(*ppl, context, [ppl_options, &context] { return measure_ppl(*ppl_options, context.options); });

  auto logits_options = std::make_shared<EvalOptions>();
  CLI::App* logits = verb->add_subcommand("logits", "Logits after every position, as a NumPy file");
  add_shared_options(*logits, *logits_options);
  logits->add_option("--tokens", logits_options->num_tokens, "Only the first so many tokens (0: all)")
      ->transform(whole_number(std::int64_t{0}, std::int64_t{1} << 31))
      ->capture_default_str();
  logits->add_option("--out", logits_options->out, "The .npy file to write")->required();
  on_chosen(*logits, context,
            [logits_options, &context] { return write_logits(*logits_options, context.options); });

  add_eval_kv(*verb, context);
  add_eval_kv_learn(*verb, context);
  add_eval_kv_regret(*verb, context);
  add_eval_gate(*verb, context);
  add_eval_search(*verb, context);
  add_eval_hidden(*verb, context);
}

}  // namespace kvasir::cli
