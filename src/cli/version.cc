// kvasir version: which binary this is, and which instruction sets it can use here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/json_writer.h"
#include "cli/build_info.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "engine/host_isa.h"

namespace kvasir::cli {
namespace {

int print_version(const GlobalOptions& globals) {
  const BuildInfo build = build_info();
  const std::vector<std::string> isas = host_isas();
  if (!globals.json) {
    print(fmt::format("kvasir {} ({}, {}; this host runs {})\n", build.version, build.compiler,
                      build.build_type, fmt::join(isas, ", ")));
    return finish_output();
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object()
      .member("version", build.version)
      .member("compiler", build.compiler)
      .member("build_type", build.build_type)
      .key("isas")
      .begin_array();
  for (const std::string& isa : isas) json.value(isa);
  json.end_array().end_object();
  return print_document(std::move(out));
}

}  // namespace

void add_version(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("version", "Print version, compiler and instruction sets");
  on_chosen(*verb, context, [&context] { return print_version(context.options); });
}

}  // namespace kvasir::cli
