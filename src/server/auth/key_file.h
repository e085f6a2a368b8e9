// API keys as a file keeps them: names and hashes, never the keys.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/result.h"
#include "server/auth/tenant.h"

namespace kvasir::server::auth {

// SHA-256. A key is 256 random bits, so that neither salt nor a slow hash would add anything.
using KeyHash = std::array<std::uint8_t, 32>;

struct ApiKey {
  std::string name;  // of the tenant: letters, digits, '.', '-', '_'; at most 64
  KeyHash hash{};
  std::string created;  // UTC, e.g. 2026-11-23T04:13:15Z
  RateLimits limits = {};
  bool is_operator = false;
};

KeyHash hash_of(std::string_view key);
std::string hexadecimal(const KeyHash& hash);
// "kv-" and 43 characters. Error (kMachine): the machine has no randomness to give.
Result<std::string> make_api_key();
// Error (kUsage) naming what a tenant may be called.
Status check_key_name(std::string_view name);

// Lines "NAME HASH CREATED [rpm=N] [tpm=N] [operator]", the hash in hexadecimal and the most requests and
// tokens a minute; '#' begins a comment. Errors: kBadFile naming the line.
Result<std::vector<ApiKey>> read_key_file(const std::string& path);
// Whole or not at all, readable by the owner alone. Errors: kMachine.
Status write_key_file(const std::string& path, const std::vector<ApiKey>& keys);

}  // namespace kvasir::server::auth
