// Guesses that were learned of a model beforehand, from the file beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/draft_file.h"
#include "kvasir/engine.h"
#include "spec/ngram_table.h"
#include "text/tokenizer.h"

namespace kvasir {

// A hash over the texts of all tokens. 0: there are none.
std::uint64_t tokens_hash(const text::Tokenizer* tokenizer);

// The file's table, for a model of so many tokens. kBadFile: it is of other tokens, or broken.
Result<spec::NgramTable> table_of(const io::DraftFile& file, std::int32_t vocab_size, const text::Tokenizer* tokenizer);

// The table that the engine is to guess by: the configuration's file, else the one beside the model, else the program's own of this
// very model. Null: it guesses nothing, or there is none.
// Errors: as table_of(); that the named file cannot be read.
Result<std::shared_ptr<const spec::NgramTable>> load_draft_heads(const EngineConfig& config, std::int32_t vocab_size,
                                                                 const text::Tokenizer* tokenizer);
// The program's own file of this very model; nothing: it has none. Errors: as io::model_fingerprint().
Result<std::optional<io::DraftFile>> find_built_in_draft(const std::string& model_path);
// Bytes that load_draft_heads() will take.
std::int64_t draft_heads_bytes(const EngineConfig& config);

}  // namespace kvasir
