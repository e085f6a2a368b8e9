// GET /: a chat, and what the server does now.
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <string>
#include <string_view>

#include "server/api/endpoint.h"
#include "server/page/page_html.h"

namespace kvasir::server::page {
namespace {

// The text between <name> and </name>; the page has one of each.
std::string_view content_of(std::string_view name) {
  const std::string_view page = page_html();
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find(close, begin) - begin);
}

// As Content-Security-Policy names an inline script or style (CSP Level 3, 2.3.1).
std::string csp_hash(std::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), hash.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> base64;
  EVP_EncodeBlock(base64.data(), hash.data(), static_cast<int>(hash.size()));
  return fmt::format("'sha256-{}'", reinterpret_cast<const char*>(base64.data()));
}

std::string security_policy() {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      csp_hash(content_of("script")), csp_hash(content_of("style")));
}

// Everybody may have it, also without a key: it asks for one. The browser is told to run nothing in it but
// what was built in, and to ask nobody but this server.
void answer(const api::Writer& writer) {
  static const std::string policy = security_policy();
  writer->respond({.content_type = "text/html; charset=utf-8",
                   .headers = {{"Content-Security-Policy", policy},
                               {"X-Content-Type-Options", "nosniff"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cache-Control", "no-cache"}},
                   .body = std::string(page_html())});
}

}  // namespace

extern const api::Endpoint kPage = {
    .method = "GET",
    .pattern = "/",
    .meaning = "a page to chat and to watch the server",
    .answer = [](api::ApiContext&, const api::Writer& writer, const std::string&) { answer(writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::page
