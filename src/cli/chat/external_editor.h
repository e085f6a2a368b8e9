// A text in the editor that a person likes best.
#pragma once

#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::cli {

// Opens `text` in $VISUAL, else $EDITOR, else vi, waits, and gives what was saved, without the newlines at
// its end. The text is in a file that only its owner may read and that goes afterwards. The editor gets the
// terminal and the usual signals. Errors: kMachine when there is no such file or editor, kCancelled when the
// editor ends with another exit code than 0.
Result<std::string> edit_text(std::string_view text);

}  // namespace kvasir::cli
