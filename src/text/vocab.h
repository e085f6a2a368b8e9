// The vocabulary of a model: what its tokens are called and what they are for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kvasir/ids.h"
#include "kvasir/result.h"
#include "text/fim_tokens.h"
#include "text/token_index.h"

namespace kvasir::text {

// The tokenizer metadata of a model file as plain data; the names of the GGUF keys stand beside it.
struct VocabData {
  std::string model = {};                      // tokenizer.ggml.model
  std::string pre = {};                        // tokenizer.ggml.pre, empty when the file has none
  std::vector<std::string> tokens = {};        // tokenizer.ggml.tokens, the index is the id
  std::vector<float> scores = {};              // tokenizer.ggml.scores, one per token or none at all
  std::vector<std::int32_t> token_types = {};  // tokenizer.ggml.token_type, one per token or none at all
  std::vector<std::string> merges = {};        // tokenizer.ggml.merges, best first ("gpt2" only)

  // tokenizer.ggml.*_token_id; kNoToken where the file is silent.
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;
  TokenId eom = kNoToken;
  TokenId unknown = kNoToken;
  TokenId padding = kNoToken;
  TokenId classification = kNoToken;                  // cls
  TokenId separator = kNoToken;                       // seperator, as the key spells it
  TokenId fim_padding = kNoToken;                     // fim_pad
  TokenId fim_repository = kNoToken;                  // fim_rep
  TokenId fim_separator = kNoToken;                   // fim_sep
  TokenId fim_prefix = kNoToken;                      // fim_pre, or prefix in older files
  TokenId fim_suffix = kNoToken;                      // fim_suf, or suffix
  TokenId fim_middle = kNoToken;                      // fim_mid, or middle
  std::vector<TokenId> extra_end_of_generation = {};  // from elsewhere, e.g. a generation configuration

  std::optional<bool> add_bos = {};           // tokenizer.ggml.add_bos_token
  std::optional<bool> add_eos = {};           // tokenizer.ggml.add_eos_token
  std::optional<bool> add_space_prefix = {};  // tokenizer.ggml.add_space_prefix
  std::optional<bool> add_separator = {};     // tokenizer.ggml.add_sep_token
  std::optional<bool> merge_spaces = {};      // tokenizer.ggml.remove_extra_whitespaces
  std::optional<bool> lowercase = {};         // tokenizer.ggml.normalizer.lowercase
  std::optional<bool> strip_accents = {};     // tokenizer.ggml.normalizer.strip_accents
  std::string charsmap = {};                  // tokenizer.ggml.precompiled_charsmap, bytes
};

// The values GGUF files use.
enum class TokenType : std::uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // structure, not text: matched in a prompt only when asked for
  kUserDefined = 4,  // text that is always one token
  kUnused = 5,
  kByte = 6,  // "<0x41>"
};

enum class VocabModel : std::uint8_t {
  kByteLevelBpe,   // "gpt2": merges over bytes written in a printable alphabet
  kSentencePiece,  // "llama": merges by score over characters, U+2581 for a space, byte tokens
  kWordPiece,      // "bert": U+2581 before pieces that begin a word
  kUnigram,        // "t5"
  kCharacterBpe,   // "gemma4": merges over characters of raw UTF-8, U+2581 for a space
  kTokenizerJson,  // "tokenizer.json": whatever that file says
};

struct SpecialTokens;

// Token texts, types and the special ids, after the corrections that files in the wild need: tokens
// with the well-known text of a control or end-of-generation token get that role, whatever the file says.
//
// Thread safety: immutable. Invariants: texts are unique and not empty; every special id is kNoToken or
// inside the vocabulary.
class Vocab {
 public:
  // kBadFile when the data is inconsistent: unknown model, no tokens, a repeated text, lists of
  // different lengths, a special id outside the vocabulary.
  static Result<Vocab> create(VocabData data);

  Vocab(Vocab&&) = default;
  Vocab& operator=(Vocab&&) = default;

  VocabModel model() const { return model_; }
  std::int32_t num_tokens() const { return static_cast<std::int32_t>(texts_.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < num_tokens(); }

  // As written in the file, in the model's own notation. Requires of these three: contains(id).
  std::string_view text(TokenId id) const { return texts_[static_cast<std::size_t>(id)]; }
  TokenType type(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
  float score(TokenId id) const { return scores_.empty() ? 0.0f : scores_[static_cast<std::size_t>(id)]; }

  // The id whose text is this one; kNoToken when there is none.
  TokenId find(std::string_view text) const { return index_.find(texts_, text); }
  std::size_t longest_token_bytes() const { return longest_token_bytes_; }

  // Control and unknown tokens: not part of the text a user sees.
  bool is_hidden(TokenId id) const {
    return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
  }
  // Tokens that are matched as a whole before the rest of a text is split.
  bool is_special(TokenId id) const { return is_hidden(id) || type(id) == TokenType::kUserDefined; }

  // kNoToken where the model has none.
  TokenId bos() const { return bos_; }
  TokenId eos() const { return eos_; }
  TokenId unknown() const { return unknown_; }
  TokenId padding() const { return padding_; }
  const FimTokens& fim_tokens() const { return fim_tokens_; }

  // Any of several tokens can end an answer: the end of the text, of the turn, of the message.
  bool is_end_of_generation(TokenId id) const;
  const std::vector<TokenId>& end_of_generation() const { return end_of_generation_; }  // sorted

 private:
  Vocab(VocabModel model, std::size_t num_tokens) : model_(model), index_(num_tokens) {}
  Status set_tokens(VocabData& data);
  Status set_special_ids(const VocabData& data);
  void keep_html_tag(const VocabData& ids, SpecialTokens& special) const;
  void keep_plain_pieces(const VocabData& ids, SpecialTokens& special) const;

  VocabModel model_;
  std::vector<std::string> texts_;
  std::vector<TokenType> types_;
  std::vector<float> scores_;  // empty: all zero
  TokenIndex index_;
  std::size_t longest_token_bytes_ = 0;
  TokenId bos_ = kNoToken;
  TokenId eos_ = kNoToken;
  TokenId unknown_ = kNoToken;
  TokenId padding_ = kNoToken;
  FimTokens fim_tokens_;
  std::vector<TokenId> end_of_generation_;
};

}  // namespace kvasir::text
