// The tokenizer of a model file, without its weights.
#pragma once

#include <memory>
#include <string>

#include "kvasir/result.h"
#include "text/tokenizer.h"

namespace kvasir {

// Reads the file's metadata only. Errors: as io::open_gguf; kBadFile when the file has no tokenizer or a
// broken or unsupported one.
Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path);

}  // namespace kvasir
