#include "server/carriers/websocket/upgrade.h"

#include <boost/beast/websocket/rfc6455.hpp>
#include <memory>
#include <utility>

#include "server/api/endpoint.h"
#include "server/api_error.h"
#include "server/carriers/websocket/channel.h"

namespace kvasir::server::carriers {

namespace beast_http = boost::beast::http;

namespace {

constexpr std::string_view kVersion = "13";  // RFC 6455, 4.4

// 16 bytes in base64, as RFC 6455, 4.1, has them.
bool is_key(std::string_view text) {
  constexpr std::size_t kDigits = 22;
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return text.size() == kDigits + 2 && text.ends_with("==") &&
         text.substr(0, kDigits).find_first_not_of(kAlphabet) == text.npos;
}

// Answers whoever asks for the path without asking for a WebSocket.
void refuse_upgrade(http::ResponseWriter& writer) {
  http::Response response = error_response(
      {426,
       "/v1/stream is a WebSocket: it takes Upgrade: websocket, Sec-WebSocket-Version: 13 and a "
       "Sec-WebSocket-Key of 16 bytes in base64",
       {},
       "upgrade_required"},
      writer.request());
  response.headers.push_back({"Upgrade", "websocket"});
  response.headers.push_back({"Sec-WebSocket-Version", std::string(kVersion)});
  writer.respond(std::move(response));
}

}  // namespace

beast_http::request<beast_http::empty_body> beast_request(const http::Request& request) {
  beast_http::request<beast_http::empty_body> converted;
  converted.version(11);
  converted.method_string(request.method);
  converted.target(request.path);
  for (const http::Header& header : request.headers) converted.insert(header.name, header.value);
  return converted;
}

bool WebSocketUpgrade::takes(const http::Request& request) const {
  if (request.path != "/v1/stream" || request.method != "GET") return false;
  const std::string* version = request.header("sec-websocket-version");
  const std::string* key = request.header("sec-websocket-key");
  return boost::beast::websocket::is_upgrade(beast_request(request)) && version != nullptr &&
         *version == kVersion && key != nullptr && is_key(*key);
}

void WebSocketUpgrade::begin(http::Connection connection, http::ConnectionCounter::Slot slot,
                             std::string early, http::Request handshake,
                             const http::SessionContext& context) const {
  std::make_shared<Channel>(std::move(connection), std::move(slot), std::move(early), std::move(handshake),
                            context)
      ->start();
}

extern const api::Endpoint kStream = {
    .method = "GET",
    .pattern = "/v1/stream",
    .meaning = "a WebSocket for requests to all of these POST paths, many at a time",
    .answer = [](api::ApiContext&, const api::Writer& writer,
                 const std::string&) { refuse_upgrade(*writer); },
    .api = "kvasir",
};

}  // namespace kvasir::server::carriers
