// Pre-tokenisers that are a row of patterns, each run over the pieces that the one before left.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>

#include "text/pretokenizer.h"

namespace kvasir::text {

// Where the match of one pattern ends that begins at `begin`; `begin` when there is none.
using MatchEnd = std::size_t (*)(std::string_view text, std::size_t begin);

// The patterns of a family. Requires: it is made of passes.
std::span<const MatchEnd> passes_of(PretokenizerFamily family);

// Visits the pieces in order: matches, and what lies between them.
void visit_passes(std::string_view text, std::span<const MatchEnd> passes,
                  const std::function<void(std::string_view)>& visit);

}  // namespace kvasir::text
