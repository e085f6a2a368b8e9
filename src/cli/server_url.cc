#include "cli/server_url.h"

#include <fmt/format.h>

#include <string_view>

namespace kvasir::cli {
namespace {

std::string serve_setting(const std::vector<Setting>& settings, std::string_view flag) {
  for (const Setting& setting : settings) {
    if (setting.verb == "serve" && setting.flag == flag) return setting.value;
  }
  return {};
}

}  // namespace

std::string default_server_url(const std::vector<Setting>& settings) {
  std::string host = serve_setting(settings, "host");
  if (host == "0.0.0.0") host = "127.0.0.1";
  if (host == "::") host = "::1";
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("{}://{}:{}", serve_setting(settings, "tls-cert").empty() ? "http" : "https", host,
                     serve_setting(settings, "port"));
}

}  // namespace kvasir::cli
