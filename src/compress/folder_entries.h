// A folder's configuration and tokenizer as the entries of a GGUF file.
#pragma once

#include <string>
#include <vector>

#include "io/gguf_entries.h"
#include "io/weight_source.h"
#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir::compress {

// `tokenizer`: the folder's own; null where it has none. `tokenizer_json`: its file. GGUF names ways to split texts and
// has no others: of those the one is taken that gives the ids of the folder's tokenizer for a text with all that they
// differ in. Error (kUnmet): none does, or the tokenizer is of a kind that GGUF has no name for.
Result<std::vector<io::GgufEntry>> folder_entries(const io::WeightSource& source, const text::Tokenizer* tokenizer,
                                                  const std::string& tokenizer_json);

}  // namespace kvasir::compress
