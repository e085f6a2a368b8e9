// The API's documentation, made from the tables that drive it.
#pragma once

#include <string>

namespace kvasir::server {

// Markdown: every endpoint with its fields, and the limits.
std::string api_reference();

}  // namespace kvasir::server
