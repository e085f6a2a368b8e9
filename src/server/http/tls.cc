#include "server/http/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <chrono>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text_file.h"

namespace kvasir::server::http {
namespace {

namespace ssl = boost::asio::ssl;

std::unexpected<Error> bad_file(const std::string& path, std::string_view wanted,
                                const boost::system::error_code& error, std::string_view flag) {
  return make_error(ErrorKind::kBadFile,
                    fmt::format("{}: holds no {} in PEM: {}", printable_line(path), wanted, error.message()),
                    std::string(flag));
}

int select_h2(SSL*, const unsigned char** chosen, unsigned char* num_chosen, const unsigned char* offered,
              unsigned num_offered, void*) {
  static constexpr unsigned char kH2[] = {2, 'h', '2'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, num_chosen, kH2, sizeof kH2, offered, num_offered) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

Result<std::unique_ptr<Tls>> Tls::open(std::string certificate_file, std::string key_file, Warn warn,
                                       Protocol protocol) {
  auto tls = std::unique_ptr<Tls>(
      new Tls(std::move(certificate_file), std::move(key_file), std::move(warn), protocol));
  KVASIR_TRY(tls->context_, tls->load());
  return tls;
}

Result<Tls::Context> Tls::load() const {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  if (protocol_ == Protocol::kHttp2) SSL_CTX_set_alpn_select_cb(context->native_handle(), select_h2, nullptr);
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);  // idle connections hold none
  // OpenSSL says nothing of a file that cannot be opened, and waits for a pipe that nobody writes to.
  KVASIR_CHECKED(check_readable(certificate_file_, "tls-cert"));
  KVASIR_CHECKED(check_readable(key_file_, "tls-key"));
  // A key behind a passphrase cannot be used: without this OpenSSL asks the terminal for one.
  const auto is_encrypted = std::make_shared<bool>(false);
  context->set_password_callback([is_encrypted](std::size_t, ssl::context::password_purpose) {
    *is_encrypted = true;
    return std::string();
  });
  boost::system::error_code error;
  // The key first: where it does not belong to the certificate, that takes its place.
  context->use_private_key_file(key_file_, ssl::context::pem, error);
  if (*is_encrypted) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("{0}: is encrypted; a key without a passphrase is needed (openssl pkey -in "
                                  "{0} -out ...)",
                                  printable_line(key_file_)),
                      "tls-key");
  }
  if (error) return bad_file(key_file_, "private key", error, "tls-key");
  context->use_certificate_chain_file(certificate_file_, error);
  if (error) return bad_file(certificate_file_, "certificate", error, "tls-cert");
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {
    return make_error(
        ErrorKind::kBadFile,
        fmt::format("{}: not the key of {}", printable_line(key_file_), printable_line(certificate_file_)),
        "tls-key");
  }
  return context;
}

ssl::context& Tls::context() {
  if (!files_.has_changed(std::chrono::steady_clock::now())) return *context_;
  if (auto context = load()) {
    context_ = std::move(*context);
    files_.accept();
  } else if (files_.reject()) {
    warn_(fmt::format("{}; the certificate stays as it was", context.error().message));
  }
  return *context_;
}

}  // namespace kvasir::server::http
