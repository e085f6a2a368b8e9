// kvasir schema: what a guide keeps of a JSON Schema, and MaskBench.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/json_writer.h"
#include "cli/input_file.h"
#include "cli/number_range.h"
#include "cli/schema_runner.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/open_model.h"
#include "grammar/compile/compiled_grammar.h"
#include "grammar/ir/text_sampler.h"
#include "grammar/match/matcher.h"
#include "grammar/schema/check.h"
#include "grammar/schema/json_schema.h"
#include "grammar/token_vocabulary.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

constexpr std::size_t kMaxSchemaBytes = 1 << 20;
constexpr std::size_t kSampleBytes = 200;  // about

struct CheckOptions {
  std::string file;
  std::string model;
  std::int32_t num_samples = 1;
  std::uint64_t seed = 0;
};

struct CheckedSchema {
  grammar::SchemaReport report;
  std::size_t num_states = 0;
  std::optional<double> worst_mask_us;
  std::optional<std::string> least;
  std::vector<std::string> samples;
};

// Whether the grammar takes the text byte by byte; it reads it by another way than the sampler.
bool takes(const std::shared_ptr<const grammar::CompiledGrammar>& guide, std::string_view text) {
  grammar::GrammarMatcher matcher(guide);
  return std::ranges::all_of(text, [&](char byte) { return matcher.accept(static_cast<unsigned char>(byte)); }) &&
         matcher.is_accepting();
}

std::shared_ptr<const grammar::Vocabulary> single_bytes() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return std::make_shared<const grammar::Vocabulary>(std::vector<std::string_view>(tokens.begin(), tokens.end()));
}

std::int64_t thread_time_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<std::shared_ptr<const grammar::CompiledGrammar>> compile(std::string_view schema,
                                                                std::shared_ptr<const grammar::Vocabulary> vocabulary) {
  auto store = std::make_unique<grammar::TermStore>();
  KVASIR_TRY(grammar::SchemaGrammar made, grammar::grammar_from_schema(*store, schema));
  return grammar::CompiledGrammar::create(std::move(store), std::move(made.grammar), std::move(vocabulary));
}

// Values of the schema, each taken by the guide.
Status add_samples(const CheckOptions& options, std::string_view schema, CheckedSchema& checked) {
  constexpr int kMaxTries = 20;
  grammar::TermStore store;
  KVASIR_TRY(const grammar::SchemaGrammar made,
             grammar::grammar_from_schema(store, schema, {.blanks = grammar::JsonBlanks::kCompact}));
  KVASIR_TRY(const auto guide, compile(schema, single_bytes()));
  checked.num_states = store.num_terms();
  grammar::Derivatives derivatives(store);
  grammar::ByteStates states(store, derivatives);
  grammar::TextSampler sampler(made.grammar, states);
  checked.least = sampler.least();
  if (checked.least && !takes(guide, *checked.least)) checked.least.reset();
  std::mt19937_64 random(options.seed);
  for (int tries = 0; tries < kMaxTries * options.num_samples; ++tries) {
    if (std::ssize(checked.samples) == options.num_samples) break;
    std::optional<std::string> text = sampler.random(random, kSampleBytes);
    if (text && takes(guide, *text)) checked.samples.push_back(std::move(*text));
  }
  return {};
}

// The processor time of each mask on the way through the samples.
std::vector<double> mask_times_us(const std::shared_ptr<const grammar::CompiledGrammar>& guide,
                                  const text::Tokenizer& tokenizer, const std::vector<std::string>& samples) {
  std::vector<double> times_us;
  grammar::TokenMask mask(guide->vocabulary().num_tokens());
  for (const std::string& sample : samples) {
    grammar::GrammarMatcher matcher(guide);
    for (const TokenId token : tokenizer.encode(sample, {.add_special = false})) {
      const std::int64_t begin = thread_time_ns();
      matcher.fill(mask);
      times_us.push_back(static_cast<double>(thread_time_ns() - begin) * 1e-3);
      if (!matcher.accept(token)) break;
    }
  }
  return times_us;
}

// The longest that a mask takes; of each the least of three fresh grammars. A sample that no answer could be, because its
// masks need too many states, makes the schema one that is not supported.
Status measure_masks(const CheckOptions& options, std::string_view schema, CheckedSchema& checked) {
  KVASIR_TRY(const std::string path, store::resolve_model(options.model));
  KVASIR_TRY(const auto tokenizer, open_tokenizer(path));
  const auto vocabulary = grammar::make_vocabulary(*tokenizer);
  std::vector<double> least_us;
  for (int repeat = 0; repeat < 3; ++repeat) {
    KVASIR_TRY(const auto guide, compile(schema, vocabulary));
    const std::vector<double> times_us = mask_times_us(guide, *tokenizer, checked.samples);
    if (guide->is_exhausted()) {
      checked.report.refused.push_back({.reason = "the masks on the way through a sample need too many states"});
      return {};
    }
    if (repeat == 0) least_us = times_us;
    for (std::size_t i = 0; i < times_us.size(); ++i) least_us[i] = std::min(least_us[i], times_us[i]);
  }
  if (!least_us.empty()) checked.worst_mask_us = *std::ranges::max_element(least_us);
  return {};
}

void write_notes(JsonWriter& json, std::string_view name, const std::vector<grammar::SchemaNote>& notes) {
  json.key(name).begin_array();
  for (const grammar::SchemaNote& note : notes) {
    json.begin_object().member("pointer", note.pointer).member("keyword", note.keyword);
    json.member("reason", note.reason).end_object();
  }
  json.end_array();
}

std::string check_document(const CheckedSchema& checked) {
  const grammar::SchemaReport& report = checked.report;
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("supported", report.is_supported()).key("unsupported").begin_array();
  for (const grammar::SchemaNote& note : report.refused) json.value(note.pointer);
  json.end_array();
  write_notes(json, "refused", report.refused);
  write_notes(json, "narrowed", report.narrowed);
  json.key("ignored").begin_array();
  for (const std::string& pointer : report.ignored) json.value(pointer);
  json.end_array().member("cells", report.num_cells);
  if (report.is_supported()) json.member("states", checked.num_states);
  if (checked.worst_mask_us) json.member("worst_mask_us", *checked.worst_mask_us);
  if (checked.least) json.key("least").raw(*checked.least);
  json.key("sample").begin_array();
  for (const std::string& sample : checked.samples) json.raw(sample);
  json.end_array().end_object();
  return out;
}

std::string check_text(const CheckedSchema& checked) {
  const grammar::SchemaReport& report = checked.report;
  std::string out = report.is_supported() ? "supported\n" : "refused\n";
  const auto add_notes = [&](std::string_view name, const std::vector<grammar::SchemaNote>& notes) {
    for (const grammar::SchemaNote& note : notes) {
      out += fmt::format("{:<9} {} ({}): {}\n", name, note.pointer.empty() ? "the root" : note.pointer, note.keyword, note.reason);
    }
  };
  add_notes("refused", report.refused);
  add_notes("narrowed", report.narrowed);
  for (const std::string& pointer : report.ignored) out += fmt::format("ignored   {}\n", pointer);
  if (!report.is_supported()) return out;
  out += fmt::format("{} cells, {} states\n", report.num_cells, checked.num_states);
  if (checked.worst_mask_us) out += fmt::format("worst mask {:.1f} us\n", *checked.worst_mask_us);
  if (checked.least) out += fmt::format("least     {}\n", *checked.least);
  for (const std::string& sample : checked.samples) out += fmt::format("sample    {}\n", sample);
  return out;
}

Result<int> check_file(const CheckOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const std::string schema, read_input_file(options.file, kMaxSchemaBytes));
  CheckedSchema checked;
  auto report = grammar::check_schema(schema);
  if (!report) return make_error(ErrorKind::kBadFile, options.file + ": " + report.error().message);
  checked.report = std::move(*report);
  if (checked.report.is_supported()) {
    KVASIR_CHECKED(add_samples(options, schema, checked));
    if (!options.model.empty()) KVASIR_CHECKED(measure_masks(options, schema, checked));
  }
  const int exit_code = checked.report.is_supported() ? kExitDone : kExitNo;
  if (globals.json) return print_document(check_document(checked), exit_code);
  print(check_text(checked));
  return finish_output(exit_code);
}

void add_check(CLI::App& verb, Context& context) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* check = verb.add_subcommand("check", "Show what a guide keeps of a schema; 1 when it is refused");
  check->add_option("F", options->file, "The schema's file")->required();
  check->add_option("--model", options->model, "Measure the masks of this model's vocabulary");
  check->add_option("--sample", options->num_samples, "Values that satisfy the schema, at random")
      ->transform(whole_number(0, 10'000))
      ->capture_default_str();
  check->add_option("--seed", options->seed, "Of the random values")->capture_default_str();
  on_chosen(*check, context, [options, &context] { return check_file(*options, context.options); });
}

void add_test(CLI::App& verb, Context& context) {
  auto options = std::make_shared<SchemaTestOptions>();
  CLI::App* test = verb.add_subcommand("test", "Run MaskBench's schemas and instances on a model's vocabulary");
  test->add_option("MODEL", options->model, "Catalogue name, .gguf file or folder")->required();
  test->add_option("--cases", options->cases, "JSON lines {name, schema, tests: [{valid, data}]}, perhaps .gz")
      ->required();
  test->add_option("--only", options->only, "Only the cases of these names")->delimiter(',');
  test->add_option("--repeat", options->num_repeats, "Fresh grammars of each schema; the least time counts")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  test->add_option("--timeout-s", options->timeout_s, "Processor time of one schema, in seconds")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  test->add_option("--failures", options->failures, "Write a line of JSON for each failure to this file");
  on_chosen(*test, context, [options, &context] { return test_schemas(*options, context.options); });
}

}  // namespace

void add_schema(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("schema", "Check JSON Schemas, and test guided answers");
  verb->require_subcommand(1);
  add_check(*verb, context);
  add_test(*verb, context);
}

}  // namespace kvasir::cli
