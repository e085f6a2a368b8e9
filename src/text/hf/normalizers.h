// Changes a text before it is split: the normalizers of tokenizer.json files.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/charsmap.h"
#include "text/hf/match_finder.h"
#include "text/unicode/normal_form.h"

namespace kvasir::text::hf {

// Takes well-formed UTF-8 and gives such. Any thread may call it.
using Normalizer = std::function<std::string(std::string text)>;

struct BertNormalizerOptions {
  bool clean_text = true;        // controls go, white space becomes spaces
  bool separate_chinese = true;  // spaces around Chinese characters
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  // empty: as `lowercase`
};

Normalizer normal_form(NormalForm form);
Normalizer lowercase();
// Without marks of any kind; it decomposes nothing.
Normalizer strip_accents();
Normalizer strip(bool left, bool right);
// Every match becomes `content`.
Normalizer replace(MatchFinder find, std::string content);
// An empty text stays empty.
Normalizer prepend(std::string prefix);
// SentencePiece's rules for control characters and spaces.
Normalizer nmt();
Normalizer precompiled(Charsmap map);
Normalizer bert_normalizer(BertNormalizerOptions options);
// Every byte becomes a letter of GPT-2's byte alphabet.
Normalizer byte_level_normalizer();
Normalizer sequence(std::vector<Normalizer> steps);

// White space as the White_Space property has it.
bool is_white_space(char32_t code_point);

}  // namespace kvasir::text::hf
