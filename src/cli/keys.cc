// kvasir keys: who may use a server that is started with --api-keys.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_links.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "cli/number_range.h"
#include "cli/standard_output.h"
#include "cli/verb.h"
#include "server/auth/key_file.h"
#include "store/file_lock.h"

namespace kvasir::cli {
namespace {

using server::auth::ApiKey;

constexpr std::int64_t kMaxPerMinute = 1'000'000'000;

struct KeysOptions {
  std::string file;
  std::string name;
  server::auth::RateLimits limits;
  bool is_operator = false;
};

// A file that is not there yet has no keys.
Result<std::vector<ApiKey>> read_keys(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::vector<ApiKey>();
  return server::auth::read_key_file(file);
}

// When two commands run at once, the second reads the file that the first has written. Every link to a file has its lock.
Result<store::FileLock> lock_keys(const std::string& file) {
  return store::FileLock::acquire(file_behind_links(file) + ".lock", [] { return true; });
}

auto find_key(std::vector<ApiKey>& keys, const std::string& name) {
  return std::ranges::find(keys, name, &ApiKey::name);
}

Result<int> add_key(const KeysOptions& options, const GlobalOptions& globals) {
  KVASIR_CHECKED(server::auth::check_key_name(options.name));
  KVASIR_TRY(const store::FileLock lock, lock_keys(options.file));
  KVASIR_TRY(auto keys, read_keys(options.file));
  if (find_key(keys, options.name) != keys.end()) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("{} has a key for {} already; revoke it first",
                                  printable_line(options.file), options.name),
                      "name");
  }
  KVASIR_TRY(const std::string key, server::auth::make_api_key());
  keys.push_back({.name = options.name,
                  .hash = server::auth::hash_of(key),
                  .created = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
                  .limits = options.limits,
                  .is_operator = options.is_operator});
  KVASIR_CHECKED(server::auth::write_key_file(options.file, keys));
  std::string out;
  if (globals.json) {
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_object().member("name", options.name).member("key", key).end_object();
  } else {
    out = key;
  }
  const int exit_code = print_document(std::move(out));
  if (exit_code != kExitDone) {  // nobody has seen the key
    keys.pop_back();
    KVASIR_CHECKED(server::auth::write_key_file(options.file, keys));
    return exit_code;
  }
  if (!globals.json && !globals.quiet)
    say("This is the only time the key is shown: the file keeps its hash.");
  return exit_code;
}

std::string describe(const server::auth::RateLimits& limits) {
  const auto number = [](std::int64_t limit, std::string_view what) {
    return limit > 0 ? fmt::format("{} {} a minute", limit, what) : fmt::format("any number of {}", what);
  };
  return number(limits.requests_per_minute, "requests") + ", " + number(limits.tokens_per_minute, "tokens");
}

Result<int> list_keys(const KeysOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const auto keys, read_keys(options.file));
  if (globals.json) {
    std::string out;
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_array();
    for (const ApiKey& key : keys) {
      json.begin_object().member("name", key.name).member("created", key.created);
      if (key.limits.requests_per_minute > 0) json.member("rpm", key.limits.requests_per_minute);
      if (key.limits.tokens_per_minute > 0) json.member("tpm", key.limits.tokens_per_minute);
      if (key.is_operator) json.member("operator", true);
      json.end_object();
    }
    json.end_array();
    return print_document(std::move(out));
  }
  if (keys.empty())
    print(fmt::format("No keys in {}: `kvasir keys add NAME` makes one.\n", printable_line(options.file)));
  for (const ApiKey& key : keys) {
    print(fmt::format("{:<24}  {}  {}{}\n", key.name, key.created, describe(key.limits),
                      key.is_operator ? ", operator" : ""));
  }
  return finish_output();
}

Result<int> revoke_key(const KeysOptions& options, const GlobalOptions& globals) {
  KVASIR_TRY(const store::FileLock lock, lock_keys(options.file));
  KVASIR_TRY(auto keys, read_keys(options.file));
  const auto found = find_key(keys, options.name);
  if (found == keys.end()) {
    return make_error(
        ErrorKind::kNotFound,
        fmt::format("{} has no key for {}", printable_line(options.file), printable_line(options.name)),
        "name");
  }
  keys.erase(found);
  KVASIR_CHECKED(server::auth::write_key_file(options.file, keys));
  if (globals.json) {
    std::string out;
    JsonWriter json(out, JsonWriter::Style::kPretty);
    json.begin_object().member("revoked", options.name).end_object();
    return print_document(std::move(out));
  }
  if (!globals.quiet)
    say(fmt::format("revoked; a server that runs refuses {} within a second", options.name));
  return finish_output();
}

using Action = Result<int> (*)(const KeysOptions&, const GlobalOptions&);

CLI::App* add_action(CLI::App& keys, Context& context, const std::shared_ptr<KeysOptions>& options,
                     const char* name, const char* help, Action action) {
  CLI::App* verb = keys.add_subcommand(name, help);
  verb->add_option("--file", options->file, "File of the keys' hashes")->required();
  on_chosen(*verb, context, [options, action, &context] { return action(*options, context.options); });
  return verb;
}

}  // namespace

void add_keys(CLI::App& app, Context& context) {
  CLI::App* keys = app.add_subcommand("keys", "Manage the API keys of a server");
  keys->require_subcommand(1);
  const auto options = std::make_shared<KeysOptions>();
  CLI::App* add = add_action(*keys, context, options, "add", "Create an API key and print it, once", add_key);
  add->add_option("NAME", options->name, "The tenant's name")->required();
  add->add_option("--rpm", options->limits.requests_per_minute, "Most requests a minute (0: any number)")
      ->transform(whole_number(std::int64_t{0}, kMaxPerMinute));
  add->add_option(
         "--tpm", options->limits.tokens_per_minute,
         "Most tokens a minute, of prompts and answers; answers that exceed it delay the next requests (0: no limit)")
      ->transform(whole_number(std::int64_t{0}, kMaxPerMinute));
  add->add_flag("--operator", options->is_operator, "May see in /metrics what others' requests cost");
  add_action(*keys, context, options, "list", "List the names of API keys", list_keys);
  CLI::App* revoke = add_action(*keys, context, options, "revoke", "Revoke an API key", revoke_key);
  revoke->add_option("NAME", options->name, "The tenant's name")->required();
}

}  // namespace kvasir::cli
