#include "store/hub/hub_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/env.h"
#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::store {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPublicHub = "https://huggingface.co";

// $HF_HOME, else the folder that the hub's own client takes; empty without a home.
fs::path hub_home() {
  if (const auto home = env_string("HF_HOME")) return *home;
  if (const auto cache = env_string("XDG_CACHE_HOME")) return fs::path(*cache) / "huggingface";
  if (const auto home = env_string("HOME")) return fs::path(*home) / ".cache" / "huggingface";
  return {};
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

Result<std::string> read_token() {
  std::string origin = "HF_TOKEN";
  std::string token = trimmed(env_string("HF_TOKEN").value_or(""));
  if (token.empty()) {
    const fs::path home = hub_home();
    const fs::path path = env_string("HF_TOKEN_PATH").value_or(home.empty() ? "" : (home / "token").native());
    if (!path.empty()) token = trimmed(read_text_file(path.native(), 1 << 12).value_or(""));
    origin = printable_line(path.native());
  }
  const auto allowed = [](char c) { return c > 0x20 && c < 0x7f; };
  if (std::ranges::all_of(token, allowed)) return token;
  return make_error(ErrorKind::kUsage, fmt::format("{}: a token is one word of printable ASCII", origin));
}

Result<std::string> read_endpoint() {
  std::string endpoint = env_string("HF_ENDPOINT").value_or(kPublicHub);
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const bool has_scheme = endpoint.starts_with("https://") || endpoint.starts_with("http://");
  if (has_scheme && endpoint.find_first_of(" ?#@") == endpoint.npos) return endpoint;
  return make_error(ErrorKind::kUsage, "HF_ENDPOINT must be an address such as https://huggingface.co");
}

}  // namespace

fs::path hub_cache_folder() {
  if (const auto cache = env_string("HF_HUB_CACHE")) return *cache;
  const fs::path home = hub_home();
  return home.empty() ? home : home / "hub";
}

Result<HubSettings> HubSettings::from_environment() {
  HubSettings settings;
  KVASIR_TRY(settings.endpoint, read_endpoint());
  KVASIR_TRY(settings.token, read_token());
  // As the hub's own client reads it: any other text is a no.
  settings.offline = parse_switch(env_string("HF_HUB_OFFLINE").value_or("")).value_or(false);
  settings.cache = hub_cache_folder();
  settings.ca_file = env_string("SSL_CERT_FILE").value_or("");
  return settings;
}

}  // namespace kvasir::store
