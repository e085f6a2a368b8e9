// Bounds of what a guide may ask for.
#pragma once

#include <cstddef>

namespace kvasir::grammar {

struct Limits {
  std::size_t max_terms = 30'000;     // distinct languages
  std::size_t max_items = 1'000'000;  // of rows
  std::size_t max_places = 1'024;    // terminals that run at once: how ambiguous a text may be
  // Of masks, walks and transitions that a grammar remembers. Beyond that they are computed each time.
  std::size_t max_kept_bytes = std::size_t{4} << 20;
};

}  // namespace kvasir::grammar
