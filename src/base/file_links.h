// Symbolic links of a path's last part.
#pragma once

#include <string>

namespace kvasir {

// The path that the path's links lead to in the end, whether something is there or not. Links in a circle end at one
// of them.
//
// Thread safety: any thread.
std::string file_behind_links(std::string path);

}  // namespace kvasir
