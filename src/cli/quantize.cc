// kvasir quantize: a smaller file of a model, whose distance from the model is measured.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "base/units.h"
#include "cli/byte_budget_run.h"
#include "cli/calibration_run.h"
#include "cli/fetched_model.h"
#include "cli/interruption.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/quantize_report.h"
#include "cli/source_logits.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "compress/folder_entries.h"
#include "compress/input_scales.h"
#include "compress/neighbour_rows.h"
#include "compress/quantize_forecast.h"
#include "compress/quantize_plan.h"
#include "compress/quantizer.h"
#include "engine/open_model.h"
#include "io/imatrix_file.h"
#include "io/mmap_file.h"
#include "io/model_fingerprint.h"
#include "io/weight_source.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

struct QuantizeVerbOptions {
  std::string in, out;
  compress::QuantizeOptions quantize;
  std::string method = "auto";
  std::string imatrix_in, imatrix_out;
  CalibrationOptions calibration;
  std::string bytes;             // a size; empty: by the type
  double bits_per_weight = 0.0;  // 0: by the type
  bool is_dry_run = false;
  bool verifies = true;
  bool scales_inputs = false;
};

// The size of the file, where one was asked for.
Result<std::optional<std::int64_t>> chosen_bytes(const QuantizeVerbOptions& options) {
  if (!std::isfinite(options.bits_per_weight)) return make_error(ErrorKind::kUsage, "--bpw: takes a finite number", "bpw");
  const int num_said = (options.quantize.type.empty() ? 0 : 1) + (options.bytes.empty() ? 0 : 1) + (options.bits_per_weight > 0.0 ? 1 : 0);
  if (num_said != 1) return make_error(ErrorKind::kUsage, "one of --type, --bytes and --bpw says how small the file is to be", "type");
  if (options.bytes.empty()) return std::nullopt;
  const auto bytes = parse_bytes(options.bytes);
  if (!bytes) return make_error(ErrorKind::kUsage, "--bytes: " + bytes.error().message, "bytes");
  return *bytes;
}

// The model and all that is known of its inputs.
struct QuantizeInput {
  std::string path;
  OpenedModel opened;
  std::unique_ptr<io::WeightSource> turned;  // of a folder whose rows stand otherwise than in GGUF
  std::vector<io::GgufEntry> entries;
  std::optional<io::Imatrix> imatrix;
  CalibrationRun calibration;  // empty without --calibrate
  std::unique_ptr<io::WeightSource> scaled;  // with scales of inputs in its norms; null without

  // The source's own numbers, as they stand in GGUF files.
  const io::WeightSource& unscaled() const { return turned != nullptr ? *turned : opened.source(); }
  const io::WeightSource& source() const { return scaled != nullptr ? *scaled : unscaled(); }
  compress::Calibration known() const {
    return {.imatrix = imatrix ? &*imatrix : nullptr, .statistics = calibration.statistics.get()};
  }
};

// Nothing that is there is written over, but for a file that an earlier run made or the user names.
Status check_out(const std::string& in, const std::string& out) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto refused = [&](const std::string& path, const char* what) {
    return make_error(ErrorKind::kUsage, fmt::format("{}: {}", printable_line(path), what), "OUT");
  };
  if (out.empty()) return make_error(ErrorKind::kUsage, "OUT is empty: it names the file to write", "OUT");
  const fs::path folder = fs::path(out).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    return make_error(ErrorKind::kMachine, fmt::format("{}: cannot be written: no such folder", printable_line(out)), "OUT");
  }
  const std::string journal = out + ".part", made = out + ".part.gguf";
  for (const std::string& path : {out, journal, made}) {
    if (fs::is_symlink(fs::symlink_status(path, error)) && path != out) return refused(path, "is a link: quantize writes its own file there");
    if (!fs::exists(path, error)) continue;
    if (!fs::is_regular_file(path, error)) return refused(path, "is there and is no file");
    if (fs::equivalent(in, path, error)) return refused(path, path == out ? "OUT is IN: quantize writes another file" : "is IN, and quantize would write there");
  }
  if (fs::exists(made, error) && !fs::exists(journal, error)) return refused(made, "is there without its journal: delete it first");
  if (fs::is_directory(in, error) && fs::exists(out, error) && fs::equivalent(in, folder.empty() ? fs::path(".") : folder, error)) {
    return refused(out, "is a file of the folder IN");
  }
  return {};
}

Result<QuantizeInput> open_input(const QuantizeVerbOptions& options, const GlobalOptions& globals) {
  KVASIR_CHECKED(fetch_if_missing(options.in, globals));
  QuantizeInput input;
  KVASIR_TRY(input.path, store::resolve_model(options.in));
  KVASIR_CHECKED(check_out(input.path, options.out));
  KVASIR_TRY(input.opened, open_model(input.path));
  if (input.opened.is_folder()) {
    KVASIR_TRY(input.turned, compress::with_neighbour_rows(input.opened.source()));
    KVASIR_TRY(const auto tokenizer, input.opened.load_tokenizer());
    KVASIR_TRY(input.entries, compress::folder_entries(input.source(), tokenizer.get(), input.opened.tokenizer_json()));
  } else {
    KVASIR_TRY(const io::MmapFile file, io::MmapFile::open(input.path));
    KVASIR_TRY(input.entries, io::read_gguf_entries(file.bytes()));
  }
  if (!options.imatrix_in.empty()) {
    KVASIR_TRY(input.imatrix, io::read_imatrix(options.imatrix_in));
  }
  return input;
}

Status check_method(const QuantizeVerbOptions& options) {
  const bool calibrates = !options.calibration.text.empty(), has_imatrix = !options.imatrix_in.empty();
  const auto refused = [](std::string message, const char* flag) { return make_error(ErrorKind::kUsage, std::move(message), flag); };
  if (calibrates && has_imatrix) return refused("--imatrix-in and --calibrate: one of them says what inputs are", "imatrix-in");
  if (options.method == "imatrix" && !has_imatrix && !calibrates) {
    return refused("--method imatrix: needs --imatrix-in FILE or --calibrate FILE|self", "method");
  }
  if (options.scales_inputs && !calibrates) return refused("--awq: needs --calibrate FILE|self", "awq");
  if (options.method == "gptq" && !calibrates) return refused("--method gptq: needs --calibrate FILE|self", "method");
  if (options.method == "rtn" && (has_imatrix || calibrates)) {
    return refused("--method rtn: no importance counts there (--imatrix-in, --calibrate)", "method");
  }
  if (!options.imatrix_out.empty() && !calibrates) return refused("--imatrix-out: needs --calibrate FILE|self", "imatrix-out");
  if (options.calibration.num_tokens > 0 && !calibrates) return refused("--calibrate-tokens: needs --calibrate FILE|self", "calibrate-tokens");
  return {};
}

Result<std::string> text_fingerprint(const std::string& path, std::int64_t num_tokens) {
  KVASIR_TRY(const std::string file, io::model_fingerprint(path));
  return fmt::format("{}:{}", num_tokens, file);
}

// All that the bytes of the file depend on.
Result<std::string> fingerprint_of(const QuantizeVerbOptions& options, const QuantizeInput& input,
                                   const compress::QuantizePlan& plan) {
  KVASIR_TRY(const std::string source, io::model_fingerprint(input.path));
  std::string importance = "none";
  if (!options.imatrix_in.empty()) {
    KVASIR_TRY(importance, io::model_fingerprint(options.imatrix_in));
  }
  if (input.calibration.statistics != nullptr) {
    importance = fmt::format("{}:{}", input.calibration.num_tokens, options.calibration.text);
    if (options.calibration.text != "self") {
      KVASIR_TRY(importance, text_fingerprint(options.calibration.text, input.calibration.num_tokens));
    }
  }
  std::string types;
  for (const compress::PlannedTensor& tensor : plan.tensors) {
    types += fmt::format("{}.{},", static_cast<int>(tensor.choice.type), static_cast<int>(tensor.method));
  }
  return fmt::format("{} {} {:x} {}{}", source, importance, std::hash<std::string>{}(types), plan.recipe.name, input.scaled ? " awq" : "");
}

// Reads the model over the text, and keeps what it was multiplied by.
Status calibrate(const QuantizeVerbOptions& options, const GlobalOptions& globals, ThreadPool& pool, Interruption& interruption,
                 ProgressReporter& progress, QuantizeInput& input) {
  compress::QuantizeOptions expected = options.quantize;
  expected.expects_importance = true;
  if (expected.type.empty()) expected.type = "Q4_K_M";  // all matrices may be corrected
  KVASIR_TRY(const compress::QuantizePlan plan, compress::plan_quantization(input.source(), input.entries, expected, {}));
  std::set<std::string, std::less<>> with_products;
  for (const compress::PlannedTensor& tensor : plan.tensors) {
    const bool is_made = tensor.method != compress::Method::kCopy && options.method != "imatrix";
    if (is_made && compress::is_correctable(tensor.choice.type)) with_products.insert(tensor.source.name);
  }
  KVASIR_TRY(input.calibration, run_calibration(options.calibration, options.in, std::move(with_products), globals, pool, interruption, progress));
  input.imatrix = input.calibration.statistics->imatrix();
  input.imatrix->datasets = {input.calibration.text_name};
  input.imatrix->num_chunks = static_cast<std::uint32_t>(input.calibration.num_tokens / kCalibrationWindow);
  input.imatrix->chunk_tokens = kCalibrationWindow;
  if (!options.imatrix_out.empty()) return io::write_imatrix(*input.imatrix, options.imatrix_out);
  return {};
}

// Folds scales of inputs into norms; from here on the source has them, and what is known of inputs.
Status scale_inputs(ThreadPool& pool, ProgressReporter& progress, QuantizeInput& input) {
  KVASIR_TRY(compress::InputScales scales, compress::choose_input_scales(input.source(), *input.calibration.statistics, pool));
  progress.note(fmt::format("kvasir: {} norms have scales of inputs", scales.of_norms.size()));
  input.calibration.statistics->divide_inputs(scales.of_matrices);
  input.imatrix = input.calibration.statistics->imatrix();
  input.scaled = compress::make_scaled_source(input.unscaled(), std::move(scales));
  return {};
}

// Moves a file that is not what its type promises out of the way.
std::string reject(const std::string& out) {
  const std::string rejected = out + ".rejected";
  std::error_code error;
  std::filesystem::rename(out, rejected, error);
  return error ? out : rejected;
}

Result<int> dry_run(const QuantizeInput& input, const compress::QuantizePlan& plan, std::optional<double> predicted_kl,
                    ThreadPool& pool, const GlobalOptions& globals) {
  for (const std::string& warning : plan.warnings) say("kvasir: " + warning);
  QuantizeReport report{.in = input.path, .plan = &plan};
  KVASIR_TRY(report.forecast, compress::forecast(input.source(), plan, input.known(), pool));
  if (predicted_kl) report.forecast->kl = *predicted_kl;
  return print_quantize_report(report, globals.json, kExitDone);
}

// One run, step by step; any step may find that the user wants to stop.
class QuantizeRun {
 public:
  QuantizeRun(const QuantizeVerbOptions& options, const GlobalOptions& globals)
      : options_(options), globals_(globals), progress_({.quiet = globals.quiet}),
        pool_(globals.threads > 0 ? globals.threads : usable_physical_cores()) {}

  Result<int> run() {
    KVASIR_CHECKED(check_method(options_));
    KVASIR_TRY(const std::optional<std::int64_t> bytes, chosen_bytes(options_));
    KVASIR_TRY(input_, open_input(options_, globals_));
    compress::QuantizeOptions types = options_.quantize;
    types.widens_small = input_.opened.is_folder();
    types.expects_importance = !options_.calibration.text.empty();
    const bool has_budget = bytes || options_.bits_per_weight > 0.0;
    if (types.expects_importance && (!options_.is_dry_run || has_budget)) {
      KVASIR_CHECKED(calibrate(options_, globals_, pool_, interruption_, progress_, input_));
      if (options_.scales_inputs) KVASIR_CHECKED(scale_inputs(pool_, progress_, input_));
    }
    if (has_budget) {
      KVASIR_CHECKED(record_source());
      if (!logits_) return make_error(ErrorKind::kUsage, "--bytes: the model is an encoder, or has no tokenizer: nothing can be probed", "bytes");
      KVASIR_CHECKED(fit_into({.file_bytes = bytes, .bits_per_weight = options_.bits_per_weight}, types));
    }
    KVASIR_TRY(const compress::QuantizePlan plan, compress::plan_quantization(input_.source(), input_.entries, types, input_.known()));
    if (options_.is_dry_run) return dry_run(input_, plan, predicted_kl_, pool_, globals_);
    return make(plan);
  }

 private:
  Status record_source() {
    if (logits_) return {};
    progress_.report_fraction("reading the source", 0.0);
    const std::string folder = std::filesystem::path(options_.out).parent_path().string();
    KVASIR_TRY(logits_, SourceLogits::record(options_.in, folder, globals_, interruption_));
    return {};
  }

  Status fit_into(const BudgetSize& size, compress::QuantizeOptions& types) {
    const BudgetInput budget{.source = input_.source(), .entries = input_.entries, .calibration = input_.known(), .logits = *logits_, .out = options_.out};
    KVASIR_TRY(BudgetedTypes chosen, choose_budgeted_types(budget, size, pool_, globals_, interruption_,
                                                           [&](double done) { progress_.report_fraction("probing", done); }));
    types.types = std::move(chosen.types);
    predicted_kl_ = chosen.predicted_kl;
    if (types.type.empty()) types.type = "Q4_K_M";
    return {};
  }

  Result<int> make(const compress::QuantizePlan& plan) {
    KVASIR_TRY(const std::string fingerprint, fingerprint_of(options_, input_, plan));
    KVASIR_TRY(const compress::QuantizedFile file,
               compress::quantize(input_.source(), plan, input_.known(), fingerprint, options_.out, pool_,
                                  [&](std::int64_t done, std::int64_t all) {
                                    progress_.report_bytes("quantizing", done, all);
                                    return !interruption_.requested();
                                  }));
    note(plan, file);
    QuantizeReport report{.in = input_.path, .out = options_.out, .plan = &plan, .file = &file,
                          .calibration_tokens = input_.calibration.num_tokens};
    report.predicted_kl = predicted_kl_;
    if (options_.verifies) {
      KVASIR_CHECKED(record_source());
      if (logits_) {
        progress_.report_fraction("verifying", 0.5);
        KVASIR_TRY(report.verify, logits_->compare(options_.out, globals_, interruption_));
      } else {
        progress_.note("kvasir: not verified: the model is an encoder, or has no tokenizer");
      }
    }
    progress_.clear();
    report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    report.is_rejected = report.verify && !is_expected(plan, *report.verify);
    if (report.is_rejected) report.out = reject(options_.out);
    return print_quantize_report(report, globals_.json, report.is_rejected ? kExitNo : kExitDone);
  }

  void note(const compress::QuantizePlan& plan, const compress::QuantizedFile& file) {
    for (const std::string& warning : plan.warnings) progress_.note("kvasir: " + warning);
    if (file.began_anew) progress_.note("kvasir: OUT.part was of another source or of other options: everything was made anew");
    if (file.num_resumed > 0) progress_.note(fmt::format("kvasir: {} tensors were there already", file.num_resumed));
    if (file.num_uncorrected > 0) {
      progress_.note(fmt::format("kvasir: {} tensors have inputs whose products have no inverse: nearest codes by importance", file.num_uncorrected));
    }
  }

  const QuantizeVerbOptions& options_;
  const GlobalOptions& globals_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  Interruption interruption_;
  ProgressReporter progress_;
  ThreadPool pool_;
  QuantizeInput input_;
  std::optional<SourceLogits> logits_;
  std::optional<double> predicted_kl_;
};

Result<int> run_quantize(const QuantizeVerbOptions& options, const GlobalOptions& globals) {
  QuantizeRun run(options, globals);
  auto exit_code = run.run();
  if (!exit_code && exit_code.error().kind == ErrorKind::kCancelled) return kExitInterrupted;
  return exit_code;
}

}  // namespace

void add_quantize(CLI::App& app, Context& context) {
  const auto options = std::make_shared<QuantizeVerbOptions>();
  CLI::App* verb = app.add_subcommand("quantize", "Write a model as a smaller GGUF file, and measure what that costs");
  verb->add_option("IN", options->in, "Catalogue name, .gguf file or folder with safetensors, of floats")->required();
  verb->add_option("OUT", options->out, "The file to write")->required();
  verb->add_option("TYPE,--type", options->quantize.type, "Types of its tensors, by llama.cpp's names: Q8_0, Q5_K_M, Q4_K_M, Q4_0, Q3_K_M, Q2_K ...");
  verb->add_option("--bytes", options->bytes, "Instead of a type: the size of the file (60MiB); types are chosen by what parts of the model are measured to lose");
  verb->add_option("--bpw", options->bits_per_weight, "The same in bits a weight (4.2)")->check(CLI::Range(1.0, 32.0));
  verb->add_option("--method", options->method, "How codes are chosen: the nearest (rtn), by the importance of inputs (imatrix), so that errors correct each other (gptq), "
                   "or the best that is known of the inputs (auto)")
      ->check(one_of({"auto", "rtn", "imatrix", "gptq"}))
      ->capture_default_str();
  verb->add_option("--imatrix-in", options->imatrix_in, "Importance of inputs, as llama.cpp's imatrix tool writes it");
  verb->add_option("--calibrate", options->calibration.text,
                   "Text that the model reads first, of a kind that it is good at, or self: text that it writes");
  verb->add_option("--calibrate-tokens", options->calibration.num_tokens, "At most so many tokens of it (default: 65536, of its own 16384)")
      ->transform(whole_number(512, 1 << 24));
  verb->add_option("--imatrix-out", options->imatrix_out, "Keep the importance of inputs that was found in this file, for other runs and tools");
  verb->add_flag("--awq", options->scales_inputs, "Fold scales of inputs into the norms before them, so that weights of large inputs lose less; LoRA adapters of the model no longer fit");
  verb->add_option("--keep", options->quantize.keep, "REGEX=TYPE: tensors whose names match have this type; again for more");
  verb->add_flag("--requantize", options->quantize.takes_quantized, "IN may be quantised already: its numbers count as exact");
  verb->add_flag("--strict", options->quantize.is_strict, "Types that do not fit rows are an error where others change the file by more than 2%");
  verb->add_flag("--dry-run", options->is_dry_run, "Print what the file would hold, and what it would take");
  verb->add_flag("!--no-verify", options->verifies, "Do not compare the file with its source");
  on_chosen(*verb, context, [options, &context] { return run_quantize(*options, context.options); });
}

}  // namespace kvasir::cli
