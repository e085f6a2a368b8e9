// How requests name a model.
#pragma once

#include <string_view>

namespace kvasir::server::api {

// Ollama's clients write a name in any case, without its tag, with the tag "latest", or behind the address of
// its library.
bool is_name_of(std::string_view served, std::string_view asked);

}  // namespace kvasir::server::api
