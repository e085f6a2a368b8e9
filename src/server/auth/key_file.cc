#include "server/auth/key_file.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/check.h"
#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::server::auth {
namespace {

constexpr std::size_t kMaxNameLength = 64;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_';
}

std::optional<KeyHash> parse_hash(std::string_view text) {
  KeyHash hash{};
  if (text.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, hash[i], 16).ptr != digits + 2) return std::nullopt;
  }
  return hash;
}

// "rpm=N", "tpm=N" or "operator".
Status read_option(std::string_view word, ApiKey& key) {
  if (word == "operator") {
    key.is_operator = true;
    return {};
  }
  std::int64_t* limit = word.starts_with("rpm=")   ? &key.limits.requests_per_minute
                        : word.starts_with("tpm=") ? &key.limits.tokens_per_minute
                                                   : nullptr;
  const char* end = word.data() + word.size();
  if (limit != nullptr) {
    const auto parsed = std::from_chars(word.data() + 4, end, *limit);
    if (parsed.ec == std::errc{} && parsed.ptr == end && *limit > 0) return {};
  }
  return make_error(
      ErrorKind::kBadFile,
      fmt::format("a line has a name, a hash, a time and perhaps rpm=N, tpm=N and operator, got '{}'",
                  printable_line(std::string(word))));
}

Result<ApiKey> parse_line(const std::string& line) {
  std::istringstream words(line);
  ApiKey key;
  std::string hash, rest;
  words >> key.name >> hash >> key.created;
  KVASIR_CHECKED(check_key_name(key.name));
  const auto parsed = parse_hash(hash);
  if (!parsed) return make_error(ErrorKind::kBadFile, "the hash must have 64 hexadecimal digits");
  while (words >> rest) KVASIR_CHECKED(read_option(rest, key));
  key.hash = *parsed;
  return key;
}

}  // namespace

KeyHash hash_of(std::string_view key) {
  KeyHash hash{};
  CHECK(EVP_Digest(key.data(), key.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return hash;
}

std::string hexadecimal(const KeyHash& hash) {
  std::string text;
  for (const std::uint8_t byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

Result<std::string> make_api_key() {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::size_t kLength = 43;  // of 6 bits: 258
  std::array<std::uint8_t, kLength> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return make_error(ErrorKind::kMachine, "the machine gives no random bytes for a key");
  }
  std::string key = "kv-";
  for (const std::uint8_t byte : random) key += kAlphabet[byte % kAlphabet.size()];
  return key;
}

Status check_key_name(std::string_view name) {
  if (!name.empty() && name.size() <= kMaxNameLength && std::ranges::all_of(name, is_name_character))
    return {};
  return make_error(ErrorKind::kUsage,
                    fmt::format("a key's name has 1 to {} letters, digits, '.', '-' or '_', got '{}'",
                                kMaxNameLength, printable_line(std::string(name))),
                    "name");
}

Result<std::vector<ApiKey>> read_key_file(const std::string& path) {
  const auto unreadable = [&] {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{}: cannot be read: {}", printable_line(path), std::strerror(errno)),
                      "api-keys");
  };
  KVASIR_CHECKED(check_readable(path, "api-keys"));  // a pipe would hold up who asks
  std::ifstream file(path);
  if (!file) return unreadable();
  std::vector<ApiKey> keys;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos || line.starts_with('#')) continue;
    auto key = parse_line(line);
    if (!key) {
      return make_error(ErrorKind::kBadFile,
                        fmt::format("{}:{}: {}", printable_line(path), number, key.error().message),
                        "api-keys");
    }
    keys.push_back(std::move(*key));
  }
  if (file.bad()) return unreadable();
  return keys;
}

Status write_key_file(const std::string& path, const std::vector<ApiKey>& keys) {
  std::string text = "# Hashes of API keys; `kvasir keys` adds and revokes them.\n";
  for (const ApiKey& key : keys) {
    text += fmt::format("{} {} {}", key.name, hexadecimal(key.hash), key.created);
    if (key.limits.requests_per_minute > 0) text += fmt::format(" rpm={}", key.limits.requests_per_minute);
    if (key.limits.tokens_per_minute > 0) text += fmt::format(" tpm={}", key.limits.tokens_per_minute);
    if (key.is_operator) text += " operator";
    text += "\n";
  }
  return replace_text_file(path, text, 0600);
}

}  // namespace kvasir::server::auth
