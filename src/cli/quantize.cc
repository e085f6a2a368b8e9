// kvasir quantize: a smaller file of a model, whose distance from the model is measured.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/machine.h"
#include "base/printable.h"
#include "base/process_memory.h"
#include "base/progress_reporter.h"
#include "base/units.h"
#include "cli/engine_options.h"
#include "cli/fetched_model.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/one_of.h"
#include "cli/quantize_report.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "compress/quantize_forecast.h"
#include "compress/quantize_plan.h"
#include "compress/quantizer.h"
#include "eval/divergence.h"
#include "io/imatrix_file.h"
#include "io/mmap_file.h"
#include "io/model_fingerprint.h"
#include "io/weight_source.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

constexpr std::int32_t kVerifyWindows = 4, kVerifyWindowTokens = 512;

struct QuantizeVerbOptions {
  std::string in, out;
  compress::QuantizeOptions quantize;
  std::string method = "auto";
  std::string imatrix_in;
  bool is_dry_run = false;
  bool verifies = true;
};

// What the file is made from.
struct QuantizeInput {
  std::string path;
  std::unique_ptr<io::WeightSource> source;
  std::vector<io::GgufEntry> entries;
  std::optional<io::Imatrix> imatrix;

  const io::Imatrix* importance() const { return imatrix ? &*imatrix : nullptr; }
};

Result<QuantizeInput> open_input(const QuantizeVerbOptions& options, const GlobalOptions& globals) {
  KVASIR_CHECKED(fetch_if_missing(options.in, globals));
  QuantizeInput input;
  KVASIR_TRY(input.path, store::resolve_model(options.in));
  std::error_code ignored;
  if (std::filesystem::is_directory(input.path, ignored)) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: is a folder; quantize reads GGUF files", printable_line(input.path)), "IN");
  }
  KVASIR_TRY(input.source, io::open_gguf(input.path));
  KVASIR_TRY(const io::MmapFile file, io::MmapFile::open(input.path));
  KVASIR_TRY(input.entries, io::read_gguf_entries(file.bytes()));
  if (!options.imatrix_in.empty()) {
    KVASIR_TRY(input.imatrix, io::read_imatrix(options.imatrix_in));
  }
  return input;
}

Status check_method(const QuantizeVerbOptions& options) {
  if (options.method == "imatrix" && options.imatrix_in.empty()) {
    return make_error(ErrorKind::kUsage, "--method imatrix: needs --imatrix-in FILE", "method");
  }
  if (options.method == "rtn" && !options.imatrix_in.empty()) {
    return make_error(ErrorKind::kUsage, "--imatrix-in: goes with --method imatrix or auto", "imatrix-in");
  }
  std::error_code error;
  if (std::filesystem::exists(options.out) && std::filesystem::equivalent(options.in, options.out, error)) {
    return make_error(ErrorKind::kUsage, "OUT is IN: quantize writes another file", "OUT");
  }
  return {};
}

// All that the bytes of the file depend on.
Result<std::string> fingerprint_of(const QuantizeVerbOptions& options, const QuantizeInput& input,
                                   const compress::QuantizePlan& plan) {
  KVASIR_TRY(const std::string source, io::model_fingerprint(input.path));
  std::string importance = "none";
  if (input.imatrix) {
    KVASIR_TRY(importance, io::model_fingerprint(options.imatrix_in));
  }
  std::string types;
  for (const compress::PlannedTensor& tensor : plan.tensors) types += fmt::format("{},", static_cast<int>(tensor.choice.type));
  return fmt::format("{} {} {:x} {}", source, importance, std::hash<std::string>{}(types), plan.recipe.name);
}

// Both models on the source's own text.
Result<std::optional<eval::Divergence>> verify(const QuantizeVerbOptions& options, const GlobalOptions& globals,
                                               Interruption& interruption, ProgressReporter& progress) {
  GlobalOptions quiet = globals;
  quiet.quiet = true;
  EngineOptions engine;
  engine.ctx_tokens = kVerifyWindowTokens;
  engine.max_num_seqs = 1;
  engine.no_prefix_cache = true;
  engine.no_packed_cache = true;
  KVASIR_TRY(const EngineConfig config, make_engine_config(engine, globals));
  const std::string folder = std::filesystem::path(options.out).parent_path().string();
  std::vector<std::vector<TokenId>> windows;
  std::optional<eval::LogitsFile> exact;
  progress.report_fraction("verifying", 0.0);
  {
    KVASIR_TRY(const ModelSession source, open_session(options.in, config, quiet, &interruption.signals()));
    if (source.engine->model_info().is_encoder || source.engine->tokenizer() == nullptr) return std::nullopt;
    const text::Tokenizer& tokenizer = *source.engine->tokenizer();
    const TokenId first = tokenizer.vocab().bos() != kNoToken ? tokenizer.vocab().bos() : tokenizer.vocab().end_of_generation().front();
    KVASIR_TRY(windows, eval::sample_windows(*source.engine, {&first, 1}, kVerifyWindows, kVerifyWindowTokens, interruption.keep_going()));
    progress.report_fraction("verifying", 0.4);
    KVASIR_TRY(exact, eval::LogitsFile::create(folder, source.engine->model_info().vocab_size));
    KVASIR_CHECKED(eval::record_logits(*source.engine, windows, *exact, interruption.keep_going()));
  }
  progress.report_fraction("verifying", 0.7);
  KVASIR_TRY(const ModelSession product, open_session(options.out, config, quiet, &interruption.signals()));
  KVASIR_TRY(const eval::Divergence divergence, eval::measure_divergence(*product.engine, windows, *exact, interruption.keep_going()));
  return divergence;
}

// Moves a file that is not what its type promises out of the way.
std::string reject(const std::string& out) {
  const std::string rejected = out + ".rejected";
  std::error_code error;
  std::filesystem::rename(out, rejected, error);
  return error ? out : rejected;
}

Result<int> dry_run(const QuantizeVerbOptions& options, const QuantizeInput& input, const compress::QuantizePlan& plan,
                    ThreadPool& pool, const GlobalOptions& globals) {
  QuantizeReport report{.in = input.path, .plan = &plan};
  KVASIR_TRY(report.forecast, compress::forecast(*input.source, plan, input.importance(), pool));
  if (!options.verifies) report.verify = std::nullopt;
  return print_quantize_report(report, globals.json, kExitDone);
}

Result<int> run_quantize(const QuantizeVerbOptions& options, const GlobalOptions& globals) {
  KVASIR_CHECKED(check_method(options));
  Interruption interruption;
  const auto begin = std::chrono::steady_clock::now();
  KVASIR_TRY(const QuantizeInput input, open_input(options, globals));
  KVASIR_TRY(const compress::QuantizePlan plan,
             compress::plan_quantization(*input.source, input.entries, options.quantize, input.importance()));
  ProgressReporter progress({.quiet = globals.quiet});
  for (const std::string& warning : plan.warnings) progress.note("kvasir: " + warning);
  ThreadPool pool(globals.threads > 0 ? globals.threads : usable_physical_cores());
  if (options.is_dry_run) return dry_run(options, input, plan, pool, globals);
  KVASIR_TRY(const std::string fingerprint, fingerprint_of(options, input, plan));
  auto file = compress::quantize(*input.source, plan, input.importance(), fingerprint, options.out, pool,
                                 [&](std::int64_t done, std::int64_t all) {
                                   progress.report_bytes("quantizing", done, all);
                                   return !interruption.requested();
                                 });
  if (!file && file.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  if (!file) return std::unexpected(file.error());
  if (file->began_anew) progress.note("kvasir: OUT.part was of another source or of other options: everything was made anew");
  if (file->num_resumed > 0) progress.note(fmt::format("kvasir: {} tensors were there already", file->num_resumed));
  QuantizeReport report{.in = input.path, .out = options.out, .plan = &plan, .file = &*file};
  if (options.verifies) {
    auto divergence = verify(options, globals, interruption, progress);
    if (!divergence && divergence.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
    if (!divergence) return std::unexpected(divergence.error());
    report.verify = *divergence;
    if (!*divergence) progress.note("kvasir: not verified: the model is an encoder, or has no tokenizer");
  }
  progress.clear();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.is_rejected = report.verify && !is_expected(plan, *report.verify);
  if (report.is_rejected) report.out = reject(options.out);
  return print_quantize_report(report, globals.json, report.is_rejected ? kExitNo : kExitDone);
}

}  // namespace

void add_quantize(CLI::App& app, Context& context) {
  const auto options = std::make_shared<QuantizeVerbOptions>();
  CLI::App* verb = app.add_subcommand("quantize", "Write a model as a smaller GGUF file, and measure what that costs");
  verb->add_option("IN", options->in, "Catalogue name or .gguf file, of floats")->required();
  verb->add_option("OUT", options->out, "The file to write")->required();
  verb->add_option("--type", options->quantize.type, "Types of its tensors, by llama.cpp's names: Q8_0, Q5_K_M, Q4_K_M, Q4_0, Q3_K_M, Q2_K ...")
      ->required();
  verb->add_option("--method", options->method, "How codes are chosen: nearest (rtn), by the importance of inputs (imatrix), or the best there is (auto)")
      ->check(one_of({"auto", "rtn", "imatrix"}))
      ->capture_default_str();
  verb->add_option("--imatrix-in", options->imatrix_in, "Importance of inputs, as llama.cpp's imatrix tool writes it");
  verb->add_option("--keep", options->quantize.keep, "REGEX=TYPE: tensors whose names match have this type; again for more");
  verb->add_flag("--requantize", options->quantize.takes_quantized, "IN may be quantised already: its numbers count as exact");
  verb->add_flag("--strict", options->quantize.is_strict, "Types that do not fit rows are an error where others change the file by more than 2%");
  verb->add_flag("--dry-run", options->is_dry_run, "Print what the file would hold, and what it would take");
  verb->add_flag("!--no-verify", options->verifies, "Do not compare the file with its source");
  on_chosen(*verb, context, [options, &context] { return run_quantize(*options, context.options); });
}

}  // namespace kvasir::cli
