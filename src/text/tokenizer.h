// Text to token ids and back, for the tokenizer that a model file describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/sequence_frame.h"
#include "text/special_matcher.h"
#include "text/tokenizer_parts.h"
#include "text/vocab.h"

namespace kvasir::text {

struct EncodeOptions {
  // Whether control tokens in the text, such as "<|im_start|>", mean themselves. Off for anything a user
  // wrote: there they are plain text.
  bool parse_special = false;
  // Whether BOS and EOS are added where the model wants them.
  bool add_special = true;
  // Ascending byte positions at which no control token begins even so: the places in a prompt made of
  // template and user text where the user wrote something that looks like one.
  std::span<const std::size_t> plain_at = {};
};

// The ids equal those of the library `tokenizers` for the model's own tokenizer.json. llama.cpp's differ where it
// departs from that. Deviations: a text that already starts with BOS gets no second one;
// overlong and surrogate UTF-8 counts as invalid; a byte that SentencePiece cannot express becomes the unknown
// token.
//
// decode is the inverse of encode, as far as normalizers lose nothing. Time is linear in the text but for a
// logarithm of the longest word.
//
// Thread safety: immutable; any thread may call any const function.
class Tokenizer {
 public:
  // kBadFile when the data is inconsistent or of a kind that is not supported.
  static Result<std::unique_ptr<Tokenizer>> create(VocabData data);
  explicit Tokenizer(TokenizerParts parts);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  const Vocab& vocab() const { return *parts_.vocab; }
  bool adds_bos() const { return frame_has(parts_.frame.before, vocab().bos()); }
  bool adds_eos() const { return frame_has(parts_.frame.after, vocab().eos()); }

  // Any bytes are accepted.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;

  // Two texts as one sequence, the way a reranker wants them; special tokens in them are text. Empty: the model
  // has no form for pairs.
  std::optional<EncodedPair> encode_pair(std::string_view first, std::string_view second) const;

  // The byte positions in a user's text where a control token begins, or may begin once more text follows
  // (perhaps after trimming); what EncodeOptions::plain_at is made from.
  std::vector<std::size_t> control_token_starts(std::string_view text) const {
    return all_special_.hidden_starts(text);
  }

  // The bytes one token stands for: a part of a character perhaps, and with the leading space that belongs
  // to the token. Control and unknown tokens have none unless render_special asks for their text; nor has
  // an id outside the vocabulary. The view lives as long as this.
  std::string_view decode_token(TokenId id, bool render_special = false) const;

  // decode_token for the next token of a text, without the space that encode puts before a text.
  // at_text_start: whether the next plain text begins a text, that is nothing comes before it, or (for
  // SentencePiece) a special token; kept up to date.
  std::string_view decode_next(TokenId id, bool render_special, bool& at_text_start) const;

  // The bytes of a whole text. decode(encode(text)) == text for well-formed UTF-8 (with render_special where
  // control tokens were parsed), unless the vocabulary loses something: some lack tokens for rare bytes, and
  // SentencePiece takes U+2581 for a space.
  std::string decode(std::span<const TokenId> ids, bool render_special = false) const;

 private:
  static bool frame_has(const std::vector<TokenId>& tokens, TokenId id);
  void set_token_bytes();
  std::string bytes_of(TokenId id) const;
  void encode_plain(std::string_view text, bool is_after_special, bool at_text_start,
                    std::vector<TokenId>& ids) const;

  TokenizerParts parts_;
  bool is_pipeline_ = false;
  SpecialMatcher user_defined_;                           // pieces that are matched in any text
  SpecialMatcher all_special_;                            // and with parse_special
  std::string bytes_;                                     // of all tokens, one after the other
  std::vector<std::size_t> bytes_begin_;                  // num_tokens + 1 positions in bytes_
  std::unordered_map<TokenId, std::string> first_bytes_;  // of tokens that differ at the start of a text
};

}  // namespace kvasir::text
