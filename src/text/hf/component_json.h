// Normalizers, pre-tokenizers and decoders as tokenizer.json files describe them.
#pragma once

#include <string_view>

#include "kvasir/result.h"
#include "text/hf/decoders.h"
#include "text/hf/json_view.h"
#include "text/hf/normalizers.h"
#include "text/hf/pre_tokenizers.h"

namespace kvasir::text::hf {

// Each: kBadFile, with the place, for a type that is not known, a field that is missing or wrong, or a pattern that
// regex::Automaton does not take.
Result<Normalizer> read_normalizer(const JsonView& json);
Result<PreTokenizer> read_pre_tokenizer(const JsonView& json);
Result<Decoder> read_decoder(const JsonView& json);

// The places that a pattern matches: by a scanner written by hand, if the text of the pattern is a published one, else
// by an automaton. kBadFile: as regex::Automaton::compile.
Result<MatchFinder> find_pattern(std::string_view pattern);

// The pattern of Llama 3, and the words of the tekken vocabularies; see load_tokenizer_json.
std::string_view llama3_pattern();
MatchFinder find_tekken_words();

}  // namespace kvasir::text::hf
