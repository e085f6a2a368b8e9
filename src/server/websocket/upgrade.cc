#include "server/websocket/upgrade.h"

#include <boost/beast/websocket/rfc6455.hpp>
#include <utility>

#include "server/api_error.h"

namespace kvasir::server {

namespace http = boost::beast::http;

http::request<http::empty_body> beast_request(const HttpRequest& request) {
  http::request<http::empty_body> converted;
  converted.version(11);
  converted.method_string(request.method);
  converted.target(request.path);
  for (const Header& header : request.headers) converted.insert(header.name, header.value);
  return converted;
}

bool is_websocket_upgrade(const HttpRequest& request) {
  return request.path == "/v1/stream" && request.method == "GET" &&
         boost::beast::websocket::is_upgrade(beast_request(request));
}

void handle_no_upgrade(Exchange& exchange) {
  HttpResponse response =
      error_response({426, "/v1/stream is a WebSocket: it takes Upgrade: websocket", {}, "upgrade_required"},
                     exchange.request());
  response.headers.push_back({"Upgrade", "websocket"});
  exchange.respond(std::move(response));
}

}  // namespace kvasir::server
