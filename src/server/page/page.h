// The page at "/": a chat, and what the server does now.
#pragma once

#include <memory>

#include "server/http/response_writer.h"

namespace kvasir::server::page {

// Everybody may have it, also without a key: it asks for one. The browser is told to run nothing in it but
// what was built in, and to ask nobody but this server.
void handle_page(const std::shared_ptr<http::ResponseWriter>& writer);

}  // namespace kvasir::server::page
