#include "server/auth/key_ring.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <chrono>
#include <utility>

namespace kvasir::server::auth {
namespace {

std::unexpected<ApiError> unauthorised(std::string message) {
  return std::unexpected(ApiError{401, std::move(message), {}, "invalid_api_key"});
}

// The scheme's name may be in any case (RFC 9110, 11.1).
std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  const boost::beast::string_view scheme(authorization.data(), kScheme.size());
  if (!boost::beast::iequals(scheme, {kScheme.data(), kScheme.size()})) return {};
  return authorization.substr(kScheme.size());
}

// Anthropic's clients send "x-api-key", Azure's "api-key".
ApiResult<std::string_view> token_of(const http::Request& request) {
  const std::string* authorization = request.header("Authorization");
  if (authorization == nullptr) {
    for (const char* name : {"x-api-key", "api-key"}) {
      if (const std::string* key = request.header(name); key != nullptr && !key->empty()) return *key;
    }
    return unauthorised("no API key came with the request: Authorization: Bearer KEY");
  }
  const std::string_view token = bearer_token(*authorization);
  if (token.empty()) return unauthorised("the Authorization header must be: Bearer KEY");
  return token;
}

}  // namespace

bool is_public_path(std::string_view path) {
  static constexpr std::array<std::string_view, 6> kPublic = {"/", "/health", "/ping", "/version",
                                                              "/api/version", "/openapi.json"};
  return std::ranges::find(kPublic, path) != kPublic.end() || path.starts_with("/health/");
}

Result<std::unique_ptr<KeyRing>> KeyRing::open(std::string path, Warn warn) {
  auto ring = std::unique_ptr<KeyRing>(new KeyRing(std::move(path), std::move(warn)));
  KVASIR_TRY(std::vector<ApiKey> keys, read_key_file(ring->path_));
  ring->keys_ = std::make_shared<const std::vector<ApiKey>>(std::move(keys));
  return ring;
}

KeyRing::Keys KeyRing::keys() {
  const std::lock_guard lock(mutex_);
  if (!file_.has_changed(std::chrono::steady_clock::now())) return keys_;
  if (auto read = read_key_file(path_)) {
    keys_ = std::make_shared<const std::vector<ApiKey>>(std::move(*read));
    file_.accept();
  } else if (file_.reject()) {
    warn_(fmt::format("{}; the API keys stay as they were", read.error().message));
  }
  return keys_;
}

ApiResult<Tenant> KeyRing::admit(const http::Request& request) {
  if (is_public_path(request.path)) return Tenant{};
  KVASIR_TRY(const std::string_view token, token_of(request));
  const KeyHash hash = hash_of(token);
  const Keys keys = this->keys();
  const ApiKey* found = nullptr;
  for (const ApiKey& key : *keys) {  // all of them: how long it takes says nothing
    if (CRYPTO_memcmp(key.hash.data(), hash.data(), hash.size()) == 0) found = &key;
  }
  if (found == nullptr)
    return unauthorised("Incorrect API key provided: it is not known here, or was revoked");
  return Tenant{.name = found->name,
                .limits = found->limits,
                .is_operator = found->is_operator,
                .key_id = hexadecimal(found->hash)};
}

bool KeyRing::admits_still(const Tenant& tenant) {
  if (tenant.key_id.empty()) return true;
  const Keys keys = this->keys();
  return std::ranges::any_of(*keys, [&](const ApiKey& key) { return hexadecimal(key.hash) == tenant.key_id; });
}

}  // namespace kvasir::server::auth
