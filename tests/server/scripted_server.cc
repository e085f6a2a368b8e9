// Serves a scripted model, for clients that are tried against answers that are known.
#include <fmt/format.h>
#include <simdjson.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "base/text_file.h"
#include "scripted_engine.h"
#include "server/server.h"

namespace kvasir::server {
namespace {

Server* running = nullptr;  // for the signal handler

struct Arguments {
  std::string script_file, template_file;
  std::uint16_t port = 0;
};

// [{"when": text, "answer": text}, ..]; "when" may be missing.
Result<std::vector<ScriptRule>> read_script(const std::string& path) {
  simdjson::dom::parser parser;
  simdjson::dom::array rules;
  if (parser.load(path).get(rules)) return make_error(ErrorKind::kUsage, path + ": no array of rules");
  std::vector<ScriptRule> script;
  for (const simdjson::dom::element rule : rules) {
    std::string_view when, answer;
    if (rule["answer"].get(answer)) return make_error(ErrorKind::kUsage, path + ": a rule has no answer");
    if (rule["when"].get(when)) when = {};
    script.push_back({std::string(when), std::string(answer)});
  }
  return script;
}

Status serve(const Arguments& arguments) {
  const auto source = read_text_file(arguments.template_file);
  if (!source) return make_error(ErrorKind::kUsage, arguments.template_file + ": cannot be read");
  ScriptedEngine::Options options{.chat_template = *source};
  KVASIR_TRY(options.script, read_script(arguments.script_file));
  KVASIR_TRY(const auto engine, ScriptedEngine::create(std::move(options)));
  ServerConfig config;
  config.port = arguments.port;
  KVASIR_TRY(const auto server, Server::create(*engine, std::move(config)));
  running = server.get();
  const auto stop = [](int) { running->stop(); };
  std::signal(SIGTERM, stop);
  std::signal(SIGINT, stop);
  fmt::print("http://127.0.0.1:{}\n", server->port());
  std::fflush(stdout);
  return server->run();
}

}  // namespace
}  // namespace kvasir::server

int main(int argc, char** argv) {
  kvasir::server::Arguments arguments;
  CLI::App app("Serves a model that answers by a script.");
  app.add_option("script", arguments.script_file, R"(JSON: [{"when": text in the prompt, "answer": text}, ..])")
      ->required();
  app.add_option("--template", arguments.template_file, "The chat template.")->required();
  app.add_option("--port", arguments.port, "0: any free one.");
  CLI11_PARSE(app, argc, argv);
  const auto status = kvasir::server::serve(arguments);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 1;
}
