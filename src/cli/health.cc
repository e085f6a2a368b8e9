// kvasir health: whether a running server takes requests.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/number_range.h"
#include "cli/server_url.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "server/observe/health_probe.h"

namespace kvasir::cli {
namespace {

struct HealthOptions {
  std::string url;
  std::int64_t timeout_ms = 3000;
};

int print_answer(const std::string& url, const Result<server::observe::ServerAnswer>& answer,
                 const GlobalOptions& globals) {
  const bool is_ready = answer && answer->status == 200;
  const std::string detail =
      is_ready ? "ready"
      : answer ? fmt::format("not ready ({}): {}", answer->status, printable_line(answer->body))
               : answer.error().message;
  const int exit_code = is_ready ? kExitDone : kExitNo;
  if (!globals.json) {
    if (!globals.quiet) print(fmt::format("{}: {}\n", url, detail));
    return finish_output(exit_code);
  }
  std::string out;
  JsonWriter json(out, JsonWriter::Style::kPretty);
  json.begin_object().member("url", url).member("ready", is_ready).member("detail", detail).end_object();
  return print_document(std::move(out), exit_code);
}

Result<int> health(const HealthOptions& options, const Context& context) {
  const std::string url = options.url.empty() ? default_server_url(context.settings) : options.url;
  KVASIR_TRY(const server::observe::ServerAddress address, server::observe::parse_server_url(url));
  return print_answer(url,
                      server::observe::ask_health(address, std::chrono::milliseconds(options.timeout_ms)),
                      context.options);
}

}  // namespace

void add_health(CLI::App& app, Context& context) {
  auto options = std::make_shared<HealthOptions>();
  CLI::App* verb =
      app.add_subcommand("health", "Check whether a server takes requests: exit code 0, or 1 if not");
  verb->add_option("URL", options->url,
                   "http://HOST:PORT (default: where `serve` listens with the same settings)");
  verb->add_option("--timeout-ms", options->timeout_ms, "Most milliseconds to wait for the answer")
      ->transform(whole_number(1, 600'000))
      ->capture_default_str();
  on_chosen(*verb, context, [options, &context] { return health(*options, context); });
}

}  // namespace kvasir::cli
