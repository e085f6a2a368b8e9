// Paths that other servers have, for a client that was set up for one of them.
#pragma once

#include <string_view>

namespace kvasir::server::http {

// The path here that answers instead, or a sentence where none does; empty for a path that no other server is known
// for. A last slash does not count.
std::string_view hint_for_path(std::string_view path);

}  // namespace kvasir::server::http
