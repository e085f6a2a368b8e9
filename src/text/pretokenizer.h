// Splits text into the words inside which byte-level BPE merges.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir::text {

// The families of published pre-tokenisers. Each is defined by regular expressions (in word_end.h and
// pattern_passes.cc) and written by hand there, because a backtracking engine is neither linear nor safe on
// long runs.
enum class PretokenizerFamily : std::uint8_t {
  kGpt2,
  kSmolLm,  // every number alone, the rest as GPT-2
  kLlama3,
  kQwen2,      // Llama 3 with every number alone
  kQwen35,     // Qwen 2 with combining marks as letters
  kTekken,     // Mistral since Nemo: a word ends where a lower-case letter is followed by an upper-case one
  kGpt4o,      // likewise, with contractions and three digits
  kSeedCoder,  // Qwen 2 whose symbols take no line breaks along
  kUfakzeka,   // Qwen 2 without contractions
  kKimiK2,     // GPT-4o with Chinese in words of its own
  kExaoneMoe,  // Qwen 2 whose words may be several, with a space between them
  kJais2,      // Llama 3 whose spaces come in powers of two
  kTinyAya,    // GPT-4o with numbers in groups of three from their ends
  kSuperBpe,   // such groups alone: all between them is one word
  kAfmoe,      // every run of numbers in such groups, the rest as DeepSeek V3 with more scripts
  kMiniCpm5,   // the rest are rows of patterns, see pattern_passes.h
  kLaguna,
  kDeepSeekLlm,
  kDeepSeekCoder,
  kDeepSeekV3,
  kSpark,
  kYoutu,
  kFalcon,
  kBloom,
  kViking,
  kChameleon,
  kDefault,  // files that name none: GPT-2 with punctuation and numbers split off
};

// Thread safety: immutable. Time is linear in the text, memory constant.
class Pretokenizer {
 public:
  explicit Pretokenizer(PretokenizerFamily family) : family_(family) {}

  // `name` is tokenizer.ggml.pre; an unknown one is kBadFile, because guessing gives wrong ids silently.
  static Result<Pretokenizer> create(std::string_view name);

  // Calls visit for every word in order; together the words are the text. Numbers and letters are those
  // of Unicode 15.1. Requires: text is well-formed UTF-8.
  void for_each_word(std::string_view text, const std::function<void(std::string_view)>& visit) const;

  // A word that is a token as it stands is not merged up from bytes (the Llama 3 files rely on it).
  bool keeps_known_words() const { return keeps_known_words_; }
  // Whether BOS goes in front when the file does not say.
  bool adds_bos() const { return adds_bos_; }

 private:
  PretokenizerFamily family_;
  bool keeps_known_words_ = false;
  bool adds_bos_ = false;
};

}  // namespace kvasir::text
