#include "server/config_check.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "server/api/responses/stored_response.h"
#include "server/auth/key_ring.h"
#include "server/http/listener.h"
#include "server/http/tls.h"
#include "server/observe/access_log.h"

namespace kvasir::server {

Status check_config(const ServerConfig& config) {
  const std::string& base = config.base_path;
  if (!base.empty() && (!base.starts_with('/') || base.ends_with('/') || base.find("//") != base.npos ||
                        base.find_first_of("?# ") != base.npos)) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("--base-path must be like /llm, got {}", printable_line(base)), "base-path");
  }
  if (config.host.empty()) return make_error(ErrorKind::kUsage, "--host must be an address or a name, got \"\"", "host");
  if (config.tls_certificate_file.empty() != config.tls_key_file.empty()) {
    return make_error(ErrorKind::kUsage, "--tls-cert and --tls-key come together", "tls-cert");
  }
  if (config.num_io_threads < 1) {
    return make_error(ErrorKind::kUsage,
                      fmt::format("at least 1 io thread is needed, got {}", config.num_io_threads));
  }
  return {};
}

// Half for responses, half for files and batches. A quarter is for the database's own pages.
Result<std::unique_ptr<stored::ObjectStore>> open_store(const ServerConfig& config) {
  const std::int64_t all_bytes = config.state_dir.empty() ? config.stored_memory_bytes : config.state_bytes;
  const std::int64_t bytes = all_bytes / 4 * 3;
  constexpr std::int64_t kMaxResponses = 100'000, kMaxFiles = 10'000;
  KVASIR_TRY(auto store, stored::ObjectStore::open({.directory = config.state_dir,
                                                    .bounds = {{.max_bytes = bytes / 2, .max_objects = kMaxResponses},
                                                               {.max_bytes = bytes / 8 * 3, .max_objects = kMaxFiles},
                                                               {.max_bytes = bytes / 8, .max_objects = kMaxFiles}}}));
  KVASIR_CHECKED(api::fail_unfinished(*store));
  return store;
}

namespace {

std::unexpected<Error> of_flag(std::string_view flag, Error error) {
  if (!error.message.contains(flag)) error.message = fmt::format("{}: {}", flag, error.message);
  return std::unexpected(std::move(error));
}

}  // namespace

Status check_port(const std::string& host, std::uint16_t port, std::string_view flag, const Limits& limits) {
  boost::asio::io_context io;
  http::ConnectionCounter connections(limits);
  http::Listener listener(io, connections, {});
  if (const Status opened = listener.open(host, port); !opened) return of_flag(flag, opened.error());
  return {};
}

Status check_files(const ServerConfig& config) {
  const auto keep_quiet = [](std::string_view) {};  // create() warns
  if (!config.api_keys_file.empty()) {
    const auto keys = auth::KeyRing::open(config.api_keys_file, keep_quiet);
    if (!keys) return of_flag("--api-keys", keys.error());
  }
  if (!config.tls_certificate_file.empty()) {
    const auto tls = http::Tls::open(config.tls_certificate_file, config.tls_key_file, keep_quiet);
    if (!tls) return of_flag("--" + tls.error().param, tls.error());
  }
  // A pipe's reader would take the close for the end.
  std::error_code none;
  const bool is_file = !std::filesystem::exists(config.access_log_file, none) ||
                       std::filesystem::is_regular_file(config.access_log_file, none);
  if (!config.access_log_file.empty() && config.access_log_file != "-" && is_file) {
    const auto log = observe::AccessLog::open(config.access_log_file, keep_quiet);
    if (!log) return of_flag("--access-log", log.error());
  }
  if (!config.state_dir.empty()) {
    const auto store = open_store(config);
    if (!store) return of_flag("--state-dir", store.error());
  }
  return {};
}

}  // namespace kvasir::server
