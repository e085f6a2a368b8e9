// Classes of characters as the library `tokenizers` has them: those of Unicode 8, which ids depend on.
#pragma once

#include <cstdint>

namespace kvasir::text::hf {

// Punctuation, and all symbols of ASCII. A binary search, as for the others. Thread safety: all are pure.
bool is_library_punctuation(char32_t code_point);
// Marks of any kind, which StripAccents takes away.
bool is_library_mark(char32_t code_point);
// The marks that BertNormalizer takes away, in decomposed text.
bool is_library_nonspacing_mark(char32_t code_point);
// Controls, format characters, private ones and U+FFFD, which BertNormalizer leaves out.
bool is_library_dropped(char32_t code_point);

// The number of a script, for UnicodeScripts: kana are Han, marks that follow any letter have one of their own.
// 0: of no script, as the space and unassigned characters are.
std::uint32_t library_script(char32_t code_point);

}  // namespace kvasir::text::hf
