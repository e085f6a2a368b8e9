// kvasir show: what is in a model file, and whether it runs.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/described_model.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/model_facts.h"
#include "server/api/thinking.h"
#include "server/api/tool_calls/detect_syntax.h"
#include "store/model_description.h"

namespace kvasir::cli {
namespace {

// How the chat template writes calls, and whether it knows of thinking.
struct ChatFacts {
  std::string tools;  // the family of their syntax; empty: none that is known
  bool thinking = false;
};

struct Shown {
  store::ModelDescription model;
  ModelFacts facts;
  ChatFacts chat;
};

struct ShowArguments {
  std::string model;
  bool tensors = false;
  bool metadata = false;
};

ChatFacts chat_facts(const OpenedModel& model) {
  ChatFacts facts;
  const auto chat_template = model.load_chat_template("");
  if (!chat_template || *chat_template == nullptr) return facts;
  const auto tokenizer = model.load_tokenizer();
  const auto* const syntax =
      server::api::detect_tool_call_syntax(**chat_template, tokenizer ? tokenizer->get() : nullptr);
  if (syntax != nullptr) facts.tools = syntax->family;
  facts.thinking = server::api::knows_thinking((*chat_template)->source());
  return facts;
}

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

void write_config(JsonWriter& json, const ConfigFacts& config) {
  json.member("num_active_parameters", config.num_active_parameters);
  if (config.original_context_tokens > 0) json.member("original_context_tokens", config.original_context_tokens);
  json.member("rope", config.rope);
  if (config.experts) {
    json.key("experts").begin_object().member("count", config.experts->count).member("used", config.experts->used);
    json.member("shared", config.experts->shared).end_object();
  }
  json.key("kv_groups").begin_array();
  for (const KvGroupFacts& group : config.kv_groups) {
    json.begin_object()
        .member("num_layers", group.num_layers)
        .member("num_kv_heads", group.num_kv_heads)
        .member("key_dim", group.key_dim)
        .member("value_dim", group.value_dim)
        .member("window_tokens", group.window_tokens)
        .end_object();
  }
  json.end_array().key("kv_bytes_per_token").begin_object();
  json.member("q12", config.kv_bytes_per_token_q12).member("f16", config.kv_bytes_per_token_f16).end_object();
}

void write_facts(JsonWriter& json, const Shown& shown) {
  const io::ModelSummary& summary = shown.model.summary;
  const ModelFacts& facts = shown.facts;
  const auto text = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) json.member(name, value);
  };
  json.member("path", shown.model.path).member("name", summary.name).member("architecture", summary.architecture);
  text("nearest", facts.nearest);
  json.member("runs", name_of(facts.runs));
  write_lines(json, "reasons", facts.reasons);
  write_lines(json, "notices", facts.notices);
  write_lines(json, "left_out", facts.left_out);
  json.member("quantization", summary.quantization).key("types").begin_object();
  for (const auto& [type, bytes] : facts.type_bytes) json.member(type, bytes);
  json.end_object()
      .member("license", summary.license)
      .member("num_parameters", summary.num_parameters)
      .member("weight_bytes", summary.weight_bytes)
      .member("num_tensors", shown.model.tensors.size())
      .member("num_layers", summary.num_layers)
      .member("vocab_size", summary.vocab_size);
  text("tokenizer", facts.tokenizer);
  text("pre_tokenizer", facts.pre_tokenizer);
  json.member("context_length_tokens", summary.context_length_tokens);
  if (facts.config) write_config(json, *facts.config);
  json.member("chat_template", summary.has_chat_template);
  text("tools", shown.chat.tools);
  json.member("thinking", shown.chat.thinking);
  text("pooling", facts.pooling);
}

int print_description_json(const Shown& shown, const ShowArguments& arguments) {
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_array().begin_object();
  write_facts(json, shown);
  if (arguments.metadata) {
    json.key("metadata").begin_object();
    for (const store::MetadataDescription& entry : shown.model.metadata) json.key(entry.key).raw(entry.json);
    json.end_object();
  }
  if (arguments.tensors) write_tensors(json, shown.model);
  json.end_object().end_array();
  return print_document(std::move(out));
}

// A line of the description, left out where there is nothing to say.
void print_line(std::string_view label, const std::string& text) {
  if (!text.empty()) print(fmt::format("{:<15} {}\n", label, text));
}

// A figure that the file does not say is left out.
std::string count_of(std::int64_t number, std::string_view unit) {
  return number == 0 ? std::string() : fmt::format("{}{}", number, unit);
}

std::string in_millions(std::int64_t number) { return fmt::format("{:.1f} million", static_cast<double>(number) / 1e6); }

std::string types_line(const ModelFacts& facts) {
  std::string line;
  for (const auto& [type, bytes] : facts.type_bytes) {
    line += fmt::format("{}{} {}", line.empty() ? "" : ", ", type, format_bytes(bytes));
  }
  return line;
}

void print_config(const ConfigFacts& config, const io::ModelSummary& summary) {
  if (config.experts) {
    print_line("experts", fmt::format("{} a layer, {} used by a token{}; {} parameters active", config.experts->count,
                                      config.experts->used, config.experts->shared > 0 ? ", a shared one besides" : "",
                                      in_millions(config.num_active_parameters)));
  }
  for (const KvGroupFacts& group : config.kv_groups) {
    print_line("attention",
               fmt::format("{} layers of {} KV heads, {} wide{}", group.num_layers, group.num_kv_heads, group.key_dim,
                           group.window_tokens > 0 ? fmt::format(", window {}", group.window_tokens) : ""));
  }
  print_line("rope", config.rope);
  print_line("context", count_of(summary.context_length_tokens, " tokens") +
                            (config.original_context_tokens > 0
                                 ? fmt::format(", {} before RoPE was scaled", config.original_context_tokens)
                                 : ""));
  print_line("KV cache", fmt::format("{} bytes a token in q12, {} in f16", config.kv_bytes_per_token_q12,
                                     config.kv_bytes_per_token_f16));
}

void print_description(const Shown& shown) {
  const io::ModelSummary& summary = shown.model.summary;
  const ModelFacts& facts = shown.facts;
  print_line("file", printable_line(shown.model.path));
  print_line("name", printable(summary.name));
  print_line("architecture", printable(summary.architecture));
  print_line("quantization", summary.quantization);
  print_line("license", printable(summary.license));
  print_line("parameters", in_millions(summary.num_parameters));
  print_line("weights", fmt::format("{} in {} tensors", format_bytes(summary.weight_bytes), shown.model.tensors.size()));
  print_line("types", types_line(facts));
  print_line("layers", count_of(summary.num_layers, ""));
  print_line("vocabulary", summary.vocab_size == 0 ? "no tokenizer" : count_of(summary.vocab_size, " tokens"));
  print_line("tokenizer", facts.tokenizer + (facts.pre_tokenizer.empty() ? "" : ", " + facts.pre_tokenizer));
  if (facts.config) {
    print_config(*facts.config, summary);
  } else {
    print_line("context", count_of(summary.context_length_tokens, " tokens"));
  }
  print_line("chat template", summary.has_chat_template ? "yes" : "no");
  print_line("tools", shown.chat.tools);
  print_line("thinking", shown.chat.thinking ? "yes" : "");
  print_line("pooling", facts.pooling);
  const bool is_text_only = facts.runs == Runs::kTextOnly;
  print_line("runs", is_text_only ? "yes, text only" : std::string(name_of(facts.runs)));
  for (const std::string& reason : facts.reasons) print_line("", "- " + reason);
  for (const std::string& notice : facts.notices) print_line("note", notice);
  if (facts.left_out.empty()) return;
  print_line("left out", fmt::format("{} tensors that text does without, such as {}", facts.left_out.size(),
                                     printable(facts.left_out.front())));
}

void print_text(const Shown& shown, const ShowArguments& arguments) {
  print_description(shown);
  if (arguments.metadata) {
    print("\n");
    for (const store::MetadataDescription& entry : shown.model.metadata) {
      print(fmt::format("{:<42} {}\n", printable(entry.key), entry.brief));
    }
  }
  if (!arguments.tensors) return;
  print("\n");
  for (const store::TensorDescription& tensor : shown.model.tensors) {
    print(fmt::format("{:<34} {:<5} {:>9}  {}\n", printable(tensor.name), tensor.dtype,
                      format_bytes(tensor.num_bytes), fmt::join(tensor.shape, " x ")));
  }
}

Result<int> show(const ShowArguments& arguments, const GlobalOptions& globals) {
  KVASIR_TRY(const DescribedModel described, open_described(arguments.model, globals));
  Shown shown{.model = store::describe_model(described.opened.source(), arguments.metadata),
              .facts = facts_about(described.opened),
              .chat = chat_facts(described.opened)};
  for (std::string& reason : shown.facts.reasons) reason = described.in_words(std::move(reason));
  shown.model.path = described.path;
  if (shown.model.summary.license.empty()) shown.model.summary.license = described.license;
  if (globals.json) return print_description_json(shown, arguments);
  print_text(shown, arguments);
  return finish_output();
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  const auto arguments = std::make_shared<ShowArguments>();
  CLI::App* verb = app.add_subcommand("show", "Show what is in a model, and whether it runs");
  verb->add_option("MODEL", arguments->model,
                   "A name from `kvasir list`, a .gguf file, a folder, or hf:OWNER/NAME (its headers alone are fetched)")
      ->required();
  verb->add_flag("--tensors", arguments->tensors, "Every tensor with type, size and shape");
  verb->add_flag("--metadata", arguments->metadata, "Every metadata entry");
  on_chosen(*verb, context, [arguments, &context] { return show(*arguments, context.options); });
}

}  // namespace kvasir::cli
