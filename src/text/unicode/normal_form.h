// The four normal forms of Unicode 15.1, and grapheme clusters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvasir::text {

// Canonical (D, C) and compatibility (KD, KC) forms, decomposed or composed.
enum class NormalForm { kNfd, kNfc, kNfkd, kNfkc };

// Takes time linear in the text, but for sorting runs of combining marks. Requires: text is well-formed UTF-8.
// Thread safety: pure.
std::string to_normal_form(std::string_view text, NormalForm form);

// Where the extended grapheme cluster ends that begins at `begin` (UAX 29 without rule GB9c, as the
// libraries that made the published vocabularies have it). Requires: begin < text.size(), well-formed UTF-8.
std::size_t grapheme_end(std::string_view text, std::size_t begin);

}  // namespace kvasir::text
