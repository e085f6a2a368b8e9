// kvasir config: each setting's value and where it came from.
#include <fmt/format.h>

#include <utility>

#include "base/json_writer.h"
#include "cli/standard_output.h"
#include "cli/verb.h"

namespace kvasir::cli {
namespace {

void print_json_setting(JsonWriter& json, const Setting& setting) {
  json.begin_object()
      .member("verb", setting.verb)
      .member("flag", setting.flag)
      .member("value", setting.value)
      .member("origin", setting.origin)
      .end_object();
}

int print_settings(const CLI::App& app, Context& context) {
  apply_flags(app, context.settings);
  std::string out;
  if (context.options.json) {
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_array();
    for (const Setting& setting : context.settings) print_json_setting(json, setting);
    json.end_array();
    return print_document(std::move(out));
  }
  for (const Setting& setting : context.settings) {
    out += fmt::format("{:<12} --{:<24} {:<16} {}\n", setting.verb.empty() ? "(every)" : setting.verb,
                       setting.flag, setting.value.empty() ? "-" : setting.value, setting.origin);
  }
  print(out);
  return finish_output();
}

}  // namespace

void add_config(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("config", "Print each setting, its value and where it came from");
  on_chosen(*verb, context, [&app, &context] { return print_settings(app, context); });
}

}  // namespace kvasir::cli
