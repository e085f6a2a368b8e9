// Draft files that are part of the program: those of models/drafts.
#pragma once

#include <cstddef>
#include <span>

namespace kvasir {

// Their bytes, aligned as io::parse_draft_file() wants them.
std::span<const std::span<const std::byte>> built_in_heads();

}  // namespace kvasir
