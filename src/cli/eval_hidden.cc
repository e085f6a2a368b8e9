#include "cli/eval_hidden.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/observing/observing_backend.h"
#include "backend/registry.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/progress_reporter.h"
#include "cli/engine_options.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/model_session.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "eval/hidden_states.h"
#include "eval/npy_reader.h"
#include "eval/npy_writer.h"
#include "eval/scoring.h"
#include "eval/windows.h"

namespace kvasir::cli {
namespace {

constexpr const char* kHiddenDevice = "hidden-states";
constexpr std::int32_t kMostWindow = 4096;

struct EvalHiddenOptions {
  std::string model, file, ids, out;
  std::vector<std::string> taps = {"final"};
  std::int32_t ctx_tokens = 512;
  std::int64_t num_tokens = 0;
};

Result<std::vector<std::vector<TokenId>>> windows_of_ids(const std::string& path, std::int32_t ctx, std::int32_t vocab_size) {
  KVASIR_TRY(const std::string bytes, read_input_file(path));
  KVASIR_TRY(const eval::NpyIntegers ids, eval::parse_npy_integers(bytes));
  if (ids.row_length > ctx) {
    return make_error(ErrorKind::kUnmet, fmt::format("ids: rows have {} tokens, a window has {} (--ctx)", ids.row_length, ctx), "ids");
  }
  const auto length = static_cast<std::size_t>(ids.row_length > 0 ? ids.row_length : ctx);  // a row is a window of its own
  std::vector<std::vector<TokenId>> windows;
  for (std::size_t i = 0; i < ids.values.size(); ++i) {
    const std::int64_t id = ids.values[i];
    if (id < 0 || id >= vocab_size) {
      return make_error(ErrorKind::kBadFile, fmt::format("ids: number {} is {}, the vocabulary has {}", i, id, vocab_size), "ids");
    }
    if (i % length == 0) windows.emplace_back();
    windows.back().push_back(static_cast<TokenId>(id));
  }
  if (windows.empty()) return make_error(ErrorKind::kBadFile, "ids: the file has none", "ids");
  return windows;
}

Result<std::vector<std::vector<TokenId>>> windows_of(const EvalHiddenOptions& options, const Engine& engine) {
  std::vector<std::vector<TokenId>> windows;
  if (!options.ids.empty()) {
    KVASIR_TRY(windows, windows_of_ids(options.ids, options.ctx_tokens, engine.model_info().vocab_size));
  } else {
    KVASIR_TRY(const std::string text, read_input_file(options.file));
    KVASIR_TRY(windows, eval::cut_windows(*engine.tokenizer(), text, options.ctx_tokens, 0));
  }
  std::int64_t left = options.num_tokens > 0 ? options.num_tokens : INT64_MAX;
  for (auto window = windows.begin(); window != windows.end(); ++window) {
    if (left <= 0) {
      windows.erase(window, windows.end());
      break;
    }
    if (std::ssize(*window) > left) window->resize(static_cast<std::size_t>(left));
    left -= std::ssize(*window);
  }
  return windows;
}

Result<int> write_hidden(const EvalHiddenOptions& options, const GlobalOptions& globals) {
  if (options.file.empty() == options.ids.empty()) return make_error(ErrorKind::kUsage, "one of --file and --ids says what is read", "file");
  Interruption interruption;
  eval::HiddenStates states;
  backend::add_device(kHiddenDevice, [&states](const kernels::KernelTable& kernels, ThreadPool& threads) {
    return std::make_unique<backend::ObservingBackend>(kernels, threads, states);
  });
  EngineOptions engine_options;
  engine_options.device = kHiddenDevice;
  engine_options.ctx_tokens = options.ctx_tokens;
  engine_options.max_num_batched_tokens = options.ctx_tokens;
  engine_options.max_num_seqs = 1;
  engine_options.no_prefix_cache = true;
  engine_options.no_packed_cache = true;
  KVASIR_TRY(EngineConfig config, make_engine_config(engine_options, globals));
  KVASIR_TRY(const ModelSession session, open_text_session(options.model, std::move(config), globals, &interruption.signals()));
  Engine& engine = *session.engine;
  if (engine.model_info().is_encoder) return make_error(ErrorKind::kUsage, "the model is an encoder: /v1/embeddings has its vectors", "MODEL");
  KVASIR_TRY(std::vector<eval::HiddenTap> taps, eval::parse_taps(options.taps, engine.model_info().num_layers));
  const auto num_taps = std::ssize(taps);
  states.choose(std::move(taps), engine.model_info().num_layers);
  KVASIR_TRY(const auto windows, windows_of(options, engine));
  const std::int64_t hidden_size = engine.model_info().hidden_size;
  KVASIR_TRY(eval::NpyWriter writer, eval::NpyWriter::create(options.out, num_taps * hidden_size, eval::NpyType::kFloat16));
  ProgressReporter progress({.quiet = globals.quiet});
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Status status = eval::observe_logits(engine, windows[i], [](std::int32_t, std::span<const float>) {}, interruption.keep_going());
    if (!status && status.error().kind == ErrorKind::kCancelled) break;
    KVASIR_CHECKED(status);
    KVASIR_TRY(const std::vector<float> rows, states.take(std::ssize(windows[i])));
    const auto width = static_cast<std::size_t>(num_taps * hidden_size);
    for (std::size_t begin = 0; begin < rows.size(); begin += width) writer.write_row(std::span(rows).subspan(begin, width));
    progress.report_fraction("hidden states", static_cast<double>(i + 1) / static_cast<double>(windows.size()));
  }
  KVASIR_CHECKED(writer.close());
  progress.clear();
  if (!globals.json) {
    print(fmt::format("{}: float16 [{}, {} x {}]\n", printable_line(options.out), writer.num_rows(), num_taps, hidden_size));
    return finish_output(interruption.exit_code());
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("out", options.out).member("tokens", writer.num_rows()).member("hidden_size", hidden_size);
  json.key("taps").begin_array();
  for (const std::string& tap : options.taps) json.value(tap);
  json.end_array().end_object();
  return print_document(std::move(out), interruption.exit_code());
}

}  // namespace

void add_eval_hidden(CLI::App& eval, Context& context) {
  const auto options = std::make_shared<EvalHiddenOptions>();
  CLI::App* verb = eval.add_subcommand("hidden", "What layers give for each token, as a NumPy file of float16");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--file", options->file, "A text to read");
  verb->add_option("--ids", options->ids, "Token ids instead: a .npy file of integers");
  verb->add_option("--taps", options->taps, "Layers whose output is wanted, from 0 on; final: the head's input")->delimiter(',')->capture_default_str();
  verb->add_option("--ctx", options->ctx_tokens, "Tokens of a window")->transform(whole_number(2, kMostWindow))->capture_default_str();
  verb->add_option("--tokens", options->num_tokens, "Only the first so many (0: all)")->transform(whole_number(std::int64_t{0}, std::int64_t{1} << 31));
  verb->add_option("--out", options->out, "The .npy file to write")->required();
  on_chosen(*verb, context, [options, &context] { return write_hidden(*options, context.options); });
}

}  // namespace kvasir::cli
