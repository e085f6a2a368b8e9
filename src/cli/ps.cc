// kvasir ps and kvasir stop: the models of a running server.
#include <fmt/format.h>
#include <simdjson.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/env.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/server_url.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "server/observe/health_probe.h"

namespace kvasir::cli {
namespace {

constexpr std::chrono::seconds kTimeout{10};

struct PsOptions {
  std::string url;
  std::string name;  // of the model to stop
};

// Its body, of an answer of 200. Errors: kUsage for what the server refuses, kUnavailable.
Result<std::string> ask(const PsOptions& options, const Context& context, server::observe::ServerQuestion question) {
  const std::string url = options.url.empty() ? default_server_url(context.settings) : options.url;
  KVASIR_TRY(const server::observe::ServerAddress address, server::observe::parse_server_url(url));
  question.api_key = env_string("KVASIR_API_KEY").value_or("");
  KVASIR_TRY(server::observe::ServerAnswer answer, server::observe::ask_server(address, question, kTimeout));
  if (answer.status == 200) return std::move(answer.body);
  simdjson::dom::parser parser;
  std::string_view message;
  if (parser.parse(answer.body).at_pointer("/error/message").get_string().get(message) != simdjson::SUCCESS) {
    message = answer.body;
  }
  const bool is_wrong_name = answer.status == 404 || answer.status == 400;
  return make_error(is_wrong_name ? ErrorKind::kUsage : ErrorKind::kUnavailable,
                    fmt::format("{} answers {}: {}", printable_line(url), answer.status, printable_line(message)));
}

Result<int> ps(const PsOptions& options, const Context& context) {
  KVASIR_TRY(const std::string body, ask(options, context, {.path = "/v1/ps"}));
  if (context.options.json) return print_document(body, kExitDone);
  simdjson::dom::parser parser;
  simdjson::dom::array models;
  if (parser.parse(body).get_array().get(models) != simdjson::SUCCESS) {
    return make_error(ErrorKind::kUnavailable, "the server's list of models cannot be read: is it kvasir's?");
  }
  print(fmt::format("{:<32} {:<8} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "NAME", "STATE", "MEMORY", "KV USED", "RUNNING",
                    "WAITING", "IDLE"));
  for (const simdjson::dom::element model : models) {
    std::int64_t memory = 0, kv = 0, running = 0, waiting = 0;
    double idle = 0.0;
    std::string_view name, state;
    const bool is_whole = !model["name"].get_string().get(name) && !model["state"].get_string().get(state) &&
                          !model["memory_bytes"].get_int64().get(memory) &&
                          !model["kv_bytes_used"].get_int64().get(kv) &&
                          !model["num_running"].get_int64().get(running) &&
                          !model["num_waiting"].get_int64().get(waiting) && !model["idle_s"].get_double().get(idle);
    if (!is_whole) return make_error(ErrorKind::kUnavailable, "the server's list of models lacks a member");
    print(fmt::format("{:<32} {:<8} {:>10} {:>10} {:>8} {:>8} {:>7.0f}s\n", printable_line(name), state,
                      format_bytes(memory), format_bytes(kv), running, waiting, idle));
  }
  return finish_output();
}

Result<int> stop(const PsOptions& options, const Context& context) {
  std::string question;
  JsonWriter(question).begin_object().member("model", options.name).end_object();
  KVASIR_TRY(const std::string body,
             ask(options, context, {.method = "POST", .path = "/v1/models/unload", .body = std::move(question)}));
  simdjson::dom::parser parser;
  bool was_loaded = false;
  if (parser.parse(body)["was_loaded"].get_bool().get(was_loaded) != simdjson::SUCCESS) {
    return make_error(ErrorKind::kUnavailable, "the server's answer cannot be read: is it kvasir's?");
  }
  const int exit_code = was_loaded ? kExitDone : kExitNo;
  if (context.options.json) return print_document(body, exit_code);
  if (!context.options.quiet) {
    print(fmt::format("{}: {}\n", printable_line(options.name),
                      was_loaded ? "leaves memory when its requests have ended" : "was not loaded"));
  }
  return finish_output(exit_code);
}

void add_url_option(CLI::App& verb, PsOptions& options) {
  verb.add_option("--url", options.url,
                  "http://HOST:PORT (default: where `serve` listens with the same settings); KVASIR_API_KEY is sent");
}

}  // namespace

void add_ps(CLI::App& app, Context& context) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* verb = app.add_subcommand("ps", "List a running server's models and what they hold");
  add_url_option(*verb, *options);
  on_chosen(*verb, context, [options, &context] { return ps(*options, context); });
}

void add_stop(CLI::App& app, Context& context) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* verb = app.add_subcommand("stop", "Give the memory of a running server's model back");
  verb->add_option("NAME", options->name, "The model's name in the API")->required();
  add_url_option(*verb, *options);
  on_chosen(*verb, context, [options, &context] { return stop(*options, context); });
}

}  // namespace kvasir::cli
