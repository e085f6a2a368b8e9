// Classes of characters as the library `tokenizers` has them: those of Unicode 8, which ids depend on.
#pragma once

namespace kvasir::text::hf {

// Punctuation, and all symbols of ASCII. A binary search, as for the others. Thread safety: all are pure.
bool is_library_punctuation(char32_t code_point);
// Marks of any kind, which StripAccents takes away.
bool is_library_mark(char32_t code_point);
// The marks that BertNormalizer takes away, in decomposed text.
bool is_library_nonspacing_mark(char32_t code_point);
// Controls, format characters, private ones and U+FFFD, which BertNormalizer leaves out.
bool is_library_dropped(char32_t code_point);

}  // namespace kvasir::text::hf
