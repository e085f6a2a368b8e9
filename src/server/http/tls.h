// The server's certificate, read again when its file changes.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file_watch.h"
#include "kvasir/result.h"

namespace kvasir::server::http {

// TLS 1.2 and later. Connections that are open keep the certificate they began with; files that cannot be
// used any more leave the last ones in place until they can, and are warned of once.
//
// Thread safety: context() from one thread at a time.
class Tls {
 public:
  using Warn = std::function<void(std::string_view line)>;
  enum class Protocol : std::uint8_t { kHttp1, kHttp2 };  // kHttp2: the client must offer h2 (ALPN)

  // PEM files: the certificate with its chain, and its key. Errors: kBadFile.
  static Result<std::unique_ptr<Tls>> open(std::string certificate_file, std::string key_file, Warn warn,
                                           Protocol protocol = Protocol::kHttp1);

  // As the files have it, or had it a second ago; valid until the next call.
  boost::asio::ssl::context& context();

 private:
  using Context = std::unique_ptr<boost::asio::ssl::context>;

  Tls(std::string certificate_file, std::string key_file, Warn warn, Protocol protocol)
      : certificate_file_(std::move(certificate_file)),
        key_file_(std::move(key_file)),
        warn_(std::move(warn)),
        protocol_(protocol),
        files_({certificate_file_, key_file_}) {}
  Result<Context> load() const;

  const std::string certificate_file_, key_file_;
  const Warn warn_;
  const Protocol protocol_;
  Context context_;
  FileWatch files_;
};

}  // namespace kvasir::server::http
