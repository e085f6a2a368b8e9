#include "cli/eval_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "base/gzip.h"
#include "base/progress_reporter.h"
#include "base/text_file.h"
#include "cli/gate_change.h"
#include "cli/gate_report.h"
#include "cli/input_file.h"
#include "cli/interruption.h"
#include "cli/number_range.h"
#include "cli/one_of.h"
#include "cli/standard_output.h"
#include "engine/kv_params.h"
#include "eval/gate/basic_layer.h"
#include "eval/gate/engine_arm.h"
#include "eval/gate/long_items.h"
#include "eval/gate/schema_items.h"
#include "eval/gate/task_items.h"
#include "eval/gate/task_layer.h"
#include "eval/kv_text.h"
#include "eval/windows.h"
#include "text/tokenizer.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxSchemasBytes = std::size_t{1} << 30;
constexpr std::int32_t kNumDistractorFacts = 24;
constexpr std::int32_t kLeastOfKind = 5;
constexpr std::array<std::string_view, 4> kLayers = {"basic", "task", "structured", "long"};

// The contents of the files that were named; empty: none was.
struct GateFiles {
  std::string text, tasks, schemas;
};

Result<GateFiles> read_gate_files(const GateOptions& options) {
  GateFiles files;
  if (!options.file.empty()) {
    KVASIR_TRY(files.text, read_input_file(options.file));
  }
  if (!options.tasks.empty()) {
    KVASIR_TRY(files.tasks, read_input_file(options.tasks));
  }
  if (options.schemas.empty()) return files;
  KVASIR_TRY(files.schemas, read_input_file(options.schemas, kMaxSchemasBytes));
  if (!is_gzip(files.schemas)) return files;
  auto contents = gunzip(files.schemas, kMaxSchemasBytes);
  if (!contents) return make_error(contents.error().kind, options.schemas + ": " + contents.error().message);
  files.schemas = std::move(*contents);
  return files;
}

class GateRun {
 public:
  GateRun(const GateOptions& options, const GlobalOptions& globals, GateFiles files)
      : options_(options), globals_(globals), files_(std::move(files)) {}

  Result<int> run() {
    KVASIR_CHECKED(make_report_folder());
    KVASIR_TRY(sessions_, open_gate_sessions(options_, globals_, interruption_.signals()));
    const KvParams kv = options_.names_kv ? options_.kv : KvParams{};
    eval::EngineArm reference(sessions_.reference_engine(), {}, "", interruption_.keep_going());
    eval::EngineArm changed(sessions_.changed_engine(), kv, sessions_.adapter, interruption_.keep_going());
    for (const std::string_view name : kLayers) {
      if (std::ranges::find(options_.layers, name) == options_.layers.end()) continue;
      KVASIR_CHECKED(run_layer(name, {reference, changed}));
    }
    progress_.clear();
    return report();
  }

 private:
  using Layer = Result<eval::GateLayer>;

  Engine& engine() const { return sessions_.reference_engine(); }

  Status make_report_folder() const {
    if (options_.report.empty()) return {};
    std::error_code failure;
    std::filesystem::create_directories(options_.report, failure);
    if (!failure) return {};
    return make_error(ErrorKind::kMachine, fmt::format("--report: {}: {}", options_.report, failure.message()), "report");
  }

  // A layer that did not run is unknown, with the reason.
  void add_unknown(std::string_view name, std::string reason) {
    report_.layers.push_back({.name = std::string(name), .weight = weight_of(name), .reason = std::move(reason)});
  }
  static double weight_of(std::string_view name) { return name == "basic" || name == "long" ? 0.3 : 0.2; }

  Status run_layer(std::string_view name, const eval::GateArms& arms) {
    const bool wants_tasks = name == "task", wants_schemas = name == "structured";
    const std::string& file = wants_tasks ? files_.tasks : wants_schemas ? files_.schemas : files_.text;
    const std::string_view flag = wants_tasks ? "--tasks" : wants_schemas ? "--schemas" : "--file";
    if (file.empty()) {
      add_unknown(name, fmt::format("it needs {} FILE, or --layers without it", flag));
      return {};
    }
    if (interruption_.requested()) {
      add_unknown(name, "interrupted");
      return {};
    }
    Layer layer = measure(name, arms);
    if (layer) {
      report_.layers.push_back(std::move(*layer));
    } else if (layer.error().kind == ErrorKind::kCancelled) {
      add_unknown(name, "interrupted");
    } else {
      return std::unexpected(layer.error());
    }
    return {};
  }

  Layer measure(std::string_view name, const eval::GateArms& arms) {
    if (name == "basic") return measure_basic(arms);
    if (name == "task") return measure_task(arms);
    if (name == "structured") return measure_structured(arms);
    return measure_long(arms);
  }

  Layer measure_basic(const eval::GateArms& arms) {
    if (options_.ctx_tokens > max_tokens()) {
      return make_error(ErrorKind::kUnmet, fmt::format("--ctx {}: the model takes {} tokens", options_.ctx_tokens, max_tokens()), "ctx");
    }
    const std::int32_t last = options_.first_window + options_.num_windows;
    KVASIR_TRY(auto windows, eval::cut_windows(*engine().tokenizer(), files_.text, options_.ctx_tokens, last));
    const auto num_left_out = std::min<std::ptrdiff_t>(options_.first_window, std::ssize(windows));
    if (num_left_out == std::ssize(windows)) {
      return make_error(ErrorKind::kUnmet, fmt::format("--windows-from {}: the text has {} windows of {} tokens", options_.first_window, windows.size(),
                                                       options_.ctx_tokens), "windows-from");
    }
    windows.erase(windows.begin(), windows.begin() + num_left_out);
    eval::BasicItems items{.windows = std::move(windows), .has_policy = options_.names_kv,
                           .should_save_bytes = options_.names_kv && is_lossy()};
    if (!is_lossy()) items.limits.kl = 0.0;  // a whole budget changes no bit
    items.limits.least_windows = std::min(items.limits.least_windows, options_.least_items);
    return eval::run_basic_layer(arms, items, show_);
  }

  Layer measure_task(const eval::GateArms& arms) {
    KVASIR_TRY(const auto tasks, eval::parse_solved_tasks(files_.tasks, static_cast<std::size_t>(options_.num_tasks)));
    KVASIR_TRY(const eval::ChatFrame frame, eval::chat_frame(engine()));
    const text::Tokenizer& tokenizer = *engine().tokenizer();
    const auto encode = [&](std::string_view text) { return tokenizer.encode(text, {.add_special = false}); };
    const TokenId bos = tokenizer.adds_bos() ? tokenizer.vocab().bos() : kNoToken;
    const std::int32_t text_tokens = std::min(options_.ctx_tokens, max_tokens());
    eval::TaskItems items{.solutions = eval::solution_texts(encode, bos, tasks, text_tokens, eval::kKvStepTokens),
                          .distractors = eval::distractor_questions(encode, frame, options_.num_questions, kNumDistractorFacts, max_tokens())};
    if (!is_lossy()) items.limits.kl = items.limits.worst_kl = 0.0;
    items.limits.least = options_.least_items;
    items.limits.least_of_kind = least_of_kind();
    items.limits.least_texts = std::min(items.limits.least_texts, options_.least_items);
    return eval::run_task_layer(arms, items, show_);
  }

  Layer measure_structured(const eval::GateArms& arms) {
    eval::StructuredItems items{.max_tokens = options_.max_answer_tokens};
    KVASIR_TRY(items.schemas, eval::make_schema_items(engine(), files_.schemas, options_.num_schemas, options_.max_answer_tokens));
    items.decode = [this](std::span<const TokenId> tokens) { return engine().decode(tokens); };
    items.limits.least = options_.least_items;
    items.limits.least_of_kind = least_of_kind();
    return eval::run_structured_layer(arms, items, show_);
  }

  Layer measure_long(const eval::GateArms& arms) {
    const std::vector<TokenId> text = engine().tokenizer()->encode(files_.text, {.add_special = false});
    KVASIR_TRY(eval::LongItems items, eval::make_long_items(engine(), text, {.needle_tokens = options_.needle_tokens,
                                                                             .num_depths = options_.num_depths,
                                                                             .num_questions = options_.num_questions}));
    items.limits.least = options_.least_items;
    items.limits.least_of_kind = least_of_kind();
    return eval::run_long_layer(arms, items, show_);
  }

  std::int32_t least_of_kind() const { return std::min(kLeastOfKind, options_.least_items); }
  std::int32_t max_tokens() const {
    return std::min(sessions_.reference_engine().model_info().max_model_len_tokens,
                    sessions_.changed_engine().model_info().max_model_len_tokens);
  }
  bool is_lossy() const {
    return !options_.names_kv || is_compressed(options_.kv);
  }

  Result<int> report() {
    const GateSubject subject{.model = options_.model, .reference = options_.against, .change = sessions_.change};
    const std::string text = gate_text(report_, subject), document = gate_document(report_, subject);
    if (!options_.report.empty()) {
      KVASIR_CHECKED(replace_text_file(options_.report + "/gate.txt", text));
      KVASIR_CHECKED(replace_text_file(options_.report + "/gate.json", document + "\n"));
    }
    const int exit_code = report_.passed() || interruption_.requested() ? interruption_.exit_code() : kExitNo;
    if (globals_.json) return print_document(document, exit_code);
    print(text);
    return finish_output(exit_code);
  }

  const GateOptions& options_;
  const GlobalOptions& globals_;
  const GateFiles files_;
  Interruption interruption_;
  ProgressReporter progress_{{.quiet = globals_.quiet}};
  const eval::GateProgress show_ = [this](std::string_view what, double fraction) { progress_.report_fraction(what, fraction); };
  GateSessions sessions_;
  eval::GateReport report_;
};

void add_gate_sizes(CLI::App& verb, GateOptions& options) {
  const auto add = [&](const char* name, std::int32_t& value, const char* help, std::int32_t least) {
    verb.add_option(name, value, help)->transform(whole_number(least, 1 << 20))->capture_default_str();
  };
  add("--ctx", options.ctx_tokens, "Tokens of a window and of a text of solved tasks", 4 * eval::kKvStepTokens / 2);
  add("--windows", options.num_windows, "Windows of the text", 1);
  add("--windows-from", options.first_window, "Begin behind so many windows, which something was tuned on", 0);
  add("--num-tasks", options.num_tasks, "Tasks whose solutions are followed", 1);
  add("--num-schemas", options.num_schemas, "Schemas that are answered", 1);
  add("--num-questions", options.num_questions, "Questions of each other kind", 1);
  add("--needle-depths", options.num_depths, "Needles per kind and length", 1);
  add("--max-tokens", options.max_answer_tokens, "Of an answer in a schema", 1);
  add("--least-items", options.least_items, "Items of a layer that must count, or it is unknown", 1);
  verb.add_option("--needle-tokens", options.needle_tokens, "Lengths of the prompts that hide needles, with commas")
      ->delimiter(',')
      ->check(CLI::Range(512, 1 << 20))
      ->capture_default_str();
  verb.add_option("--chunk", options.chunk_tokens, "Chunked prefill of both arms: tokens of a prompt in one batch, behind which a policy acts")
      ->check(CLI::IsMember({16, 32, 64, 128}))
      ->capture_default_str();
}

}  // namespace

void add_eval_gate(CLI::App& eval, Context& context) {
  auto options = std::make_shared<GateOptions>();
  CLI::App* verb = eval.add_subcommand("gate", "Whether a change of numbers may serve: four layers of checks against a reference");
  verb->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  verb->add_option("--against", options->against, "The reference: exact (MODEL without the change), or another model")->required();
  verb->add_option("--layers", options->layers, "Layers that must pass, with commas")
      ->delimiter(',')
      ->check(one_of({kLayers.begin(), kLayers.end()}))
      ->capture_default_str();
  verb->add_option("--file", options->file, "Text of the layers basic and long");
  verb->add_option("--tasks,--gsm8k", options->tasks, "Of the layer task: JSON lines {question, answer}, the answer with its solution");
  verb->add_option("--schemas", options->schemas, "Of the layer structured: JSON lines {name, schema, tests}, perhaps .gz");
  verb->add_option("--report", options->report, "Folder that gets the report as gate.json and gate.txt");
  add_kv_policy_options(*verb, options->kv);
  add_kv_forecast_option(*verb, options->engine);
  add_adapter_options(*verb, options->engine);
  add_kv_type_option(*verb, options->engine);
  add_weight_options(*verb, options->engine);
  add_gate_sizes(*verb, *options);
  on_chosen(*verb, context, [options, verb, &context]() -> Result<int> {
    for (const char* name : {"--kv-policy", "--kv-budget", "--kv-quality", "--kv-max-lost"}) {
      options->names_kv = options->names_kv || verb->get_option(name)->count() > 0;
    }
    KVASIR_TRY(GateFiles files, read_gate_files(*options));  // a pipe may let it wait: signals end it
    return GateRun(*options, context.options, std::move(files)).run();
  });
}

}  // namespace kvasir::cli
