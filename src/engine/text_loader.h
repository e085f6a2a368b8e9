// Reads a model file's tokenizer and chat template out of its metadata.
#pragma once

#include <memory>
#include <string>

#include "io/weight_source.h"
#include "kvasir/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace kvasir {

// Null when the file carries no tokenizer at all. Error (kBadFile) when it carries a broken or unsupported
// one.
Result<std::unique_ptr<text::Tokenizer>> load_tokenizer(const io::WeightSource& source);

// The override when it is not empty, else the file's own template; null when there is neither.
// Error (kBadFile, or kUsage for the override) when it does not parse.
Result<std::unique_ptr<text::ChatTemplate>> load_chat_template(const io::WeightSource& source,
                                                               const std::string& override_source);

}  // namespace kvasir
