// A tokenizer made of exchangeable parts: normalizer, pre-tokenizer, model.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "text/hf/normalizers.h"
#include "text/hf/pre_tokenizers.h"
#include "text/special_matcher.h"
#include "text/word_model.h"

namespace kvasir::text {

// Thread safety: immutable.
class Pipeline {
 public:
  struct Parts {
    hf::Normalizer normalizer = {};                        // empty: text stays as it is
    std::optional<SpecialMatcher> normalized_tokens = {};  // matched in normalised text
    hf::PreTokenizer pre_tokenizer = {};                   // empty: the text is one word
    std::unique_ptr<const WordModel> model = {};
  };

  // Requires: there is a model.
  explicit Pipeline(Parts parts);

  // Appends the ids of a text without other special tokens. Each longest run that starts like a character and
  // is none counts as U+FFFD. at_text_start: whether nothing comes before this text.
  void encode(std::string_view text, bool at_text_start, std::vector<TokenId>& ids) const;

 private:
  void encode_normalized(std::string_view text, bool at_text_start, std::vector<TokenId>& ids) const;

  Parts parts_;
};

}  // namespace kvasir::text
