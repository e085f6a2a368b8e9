// kvasir show: what is in a model file.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/model_check.h"
#include "engine/open_model.h"
#include "store/model_description.h"
#include "store/model_store.h"

namespace kvasir::cli {
namespace {

// Whether the model runs here: the reasons why not, what about it is a guess, and which tensors stay unused.
struct Verdict {
  std::vector<std::string> reasons;
  std::vector<std::string> notices;
  std::vector<std::string> left_out;
};

Verdict judge(const OpenedModel& model) {
  const auto tokenizer = model.load_tokenizer();
  const auto left_out = model.source().left_out();
  return {reasons_not_to_run(model), notices_about(model.source(), tokenizer ? tokenizer->get() : nullptr),
          {left_out.begin(), left_out.end()}};
}

struct ShowArguments {
  std::string model;
  bool tensors = false;
  bool metadata = false;
};

void write_tensors(JsonWriter& json, const store::ModelDescription& model) {
  json.key("tensors").begin_array();
  for (const store::TensorDescription& tensor : model.tensors) {
    json.begin_object().member("name", tensor.name).member("dtype", tensor.dtype).key("shape").begin_array();
    for (const std::int64_t size : tensor.shape) json.value(size);
    json.end_array().member("bytes", tensor.num_bytes).end_object();
  }
  json.end_array();
}

void write_lines(JsonWriter& json, std::string_view key, const std::vector<std::string>& lines) {
  json.key(key).begin_array();
  for (const std::string& line : lines) json.value(line);
  json.end_array();
}

int print_description_json(const store::ModelDescription& model, const Verdict& verdict,
                           const ShowArguments& arguments) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array().begin_object();
  json.member("path", model.path)
      .member("name", model.summary.name)
      .member("architecture", model.summary.architecture)
      .member("quantization", model.summary.quantization)
      .member("license", model.summary.license)
      .member("num_parameters", model.summary.num_parameters)
      .member("weight_bytes", model.summary.weight_bytes)
      .member("num_tensors", model.tensors.size())
      .member("num_layers", model.summary.num_layers)
      .member("vocab_size", model.summary.vocab_size)
      .member("context_length_tokens", model.summary.context_length_tokens)
      .member("chat_template", model.summary.has_chat_template)
      .member("runs", verdict.reasons.empty());
  write_lines(json, "reasons", verdict.reasons);
  write_lines(json, "notices", verdict.notices);
  write_lines(json, "left_out", verdict.left_out);
  if (arguments.metadata) {
    json.key("metadata").begin_object();
    for (const store::MetadataDescription& entry : model.metadata) json.key(entry.key).raw(entry.json);
    json.end_object();
  }
  if (arguments.tensors) write_tensors(json, model);
  json.end_object().end_array();
  return print_document(std::move(out));
}

void print_description(const store::ModelDescription& model, const Verdict& verdict) {
  const io::ModelSummary& summary = model.summary;
  const auto line = [](std::string_view label, const std::string& text) {
    if (!text.empty()) print(fmt::format("{:<15} {}\n", label, text));
  };
  // A figure that the file does not say is left out.
  const auto count = [](std::int64_t number, std::string_view unit) {
    return number == 0 ? std::string() : fmt::format("{}{}", number, unit);
  };
  line("file", printable_line(model.path));
  line("name", printable(summary.name));
  line("architecture", printable(summary.architecture));
  line("quantization", summary.quantization);
  line("license", printable(summary.license));
  line("parameters", fmt::format("{:.1f} million", static_cast<double>(summary.num_parameters) / 1e6));
  line("weights", fmt::format("{} in {} tensors", format_bytes(summary.weight_bytes), model.tensors.size()));
  line("layers", count(summary.num_layers, ""));
  line("vocabulary", summary.vocab_size == 0 ? "no tokenizer" : count(summary.vocab_size, " tokens"));
  line("context", count(summary.context_length_tokens, " tokens"));
  line("chat template", summary.has_chat_template ? "yes" : "no");
  line("runs", verdict.reasons.empty() ? "yes" : "no");
  for (const std::string& reason : verdict.reasons) line("", "- " + reason);
  for (const std::string& notice : verdict.notices) line("note", notice);
  if (!verdict.left_out.empty()) {
    line("left out", fmt::format("{} tensors that text does without, such as {}", verdict.left_out.size(),
                                 printable(verdict.left_out.front())));
  }
}

void print_text(const store::ModelDescription& model, const Verdict& verdict,
                const ShowArguments& arguments) {
  print_description(model, verdict);
  if (arguments.metadata) {
    print("\n");
    for (const store::MetadataDescription& entry : model.metadata) {
      print(fmt::format("{:<42} {}\n", printable(entry.key), entry.brief));
    }
  }
  if (!arguments.tensors) return;
  print("\n");
  for (const store::TensorDescription& tensor : model.tensors) {
    print(fmt::format("{:<34} {:<5} {:>9}  {}\n", printable(tensor.name), tensor.dtype,
                      format_bytes(tensor.num_bytes), fmt::join(tensor.shape, " x ")));
  }
}

int show(const ShowArguments& arguments, const GlobalOptions& options) {
  const auto path = store::resolve_model(arguments.model);
  if (!path) return report(path.error());
  const auto opened = open_model_to_describe(*path);
  if (!opened) return report(opened.error());
  const store::ModelDescription model = store::describe_model(opened->source(), arguments.metadata);
  const Verdict verdict = judge(*opened);
  if (options.json) return print_description_json(model, verdict, arguments);
  print_text(model, verdict, arguments);
  return finish_output();
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<ShowArguments>();
  CLI::App* verb = app.add_subcommand("show", "Show what is in a model file");
  verb->add_option("MODEL", arguments->model, "A name from `kvasir list`, a .gguf file or a folder")->required();
  verb->add_flag("--tensors", arguments->tensors, "Every tensor with type, size and shape");
  verb->add_flag("--metadata", arguments->metadata, "Every metadata entry");
  verb->callback([arguments, &context] {
    context.action = [arguments, &context] { return show(*arguments, context.options); };
  });
}

}  // namespace kvasir::cli
