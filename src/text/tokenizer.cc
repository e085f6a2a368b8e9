#include "text/tokenizer.h"

#include <charconv>
#include <optional>
#include <utility>

#include "text/byte_alphabet.h"

namespace kvasir::text {
namespace {

SpecialMatcher make_matcher(const Vocab& vocab, bool include_hidden) {
  std::vector<TokenId> tokens;
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    if (vocab.is_special(id) && (include_hidden || !vocab.is_hidden(id))) tokens.push_back(id);
  }
  return SpecialMatcher(vocab, std::move(tokens));
}

// "<0x41>" is the byte 0x41.
std::optional<char> parse_byte_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc{} || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

std::string unescape_spaces(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) {
    const bool is_mark = text.substr(position).starts_with(kSpaceMark);
    plain.push_back(is_mark ? ' ' : text[position]);
    position += is_mark ? kSpaceMark.size() : 1;
  }
  return plain;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(VocabData data) {
  const std::vector<std::string> merges = std::exchange(data.merges, {});
  VocabData rest = {.pre = data.pre,
                    .add_bos = data.add_bos,
                    .add_eos = data.add_eos,
                    .add_space_prefix = data.add_space_prefix};
  KVASIR_TRY(Vocab vocab, Vocab::create(std::move(data)));
  if (vocab.model() == VocabModel::kSentencePiece) {
    return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocab), rest));
  }
  KVASIR_TRY(const Pretokenizer pretokenizer, Pretokenizer::create(rest.pre));
  KVASIR_TRY(BpeModel bpe, BpeModel::create(vocab, merges, pretokenizer));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(vocab), std::move(bpe), rest));
}

Tokenizer::Tokenizer(Vocab vocab, BpeModel bpe, const VocabData& data)
    : vocab_(std::move(vocab)),
      model_(std::move(bpe)),
      adds_bos_(data.add_bos.value_or(std::get<BpeModel>(model_).adds_bos()) && vocab_.bos() != kNoToken),
      adds_eos_(data.add_eos.value_or(false) && vocab_.eos() != kNoToken),
      user_defined_(make_matcher(vocab_, /*include_hidden=*/false)),
      all_special_(make_matcher(vocab_, /*include_hidden=*/true)) {
  set_token_bytes();
}

Tokenizer::Tokenizer(Vocab vocab, const VocabData& data)
    : vocab_(std::move(vocab)),
      model_(std::in_place_type<SpmModel>, vocab_),
      adds_bos_(data.add_bos.value_or(true) && vocab_.bos() != kNoToken),
      adds_eos_(data.add_eos.value_or(false) && vocab_.eos() != kNoToken),
      adds_space_prefix_(data.add_space_prefix.value_or(true)),
      user_defined_(make_matcher(vocab_, /*include_hidden=*/false)),
      all_special_(make_matcher(vocab_, /*include_hidden=*/true)) {
  set_token_bytes();
}

void Tokenizer::set_token_bytes() {
  bytes_begin_.reserve(static_cast<std::size_t>(vocab_.num_tokens()) + 1);
  bytes_begin_.push_back(0);
  for (TokenId id = 0; id < vocab_.num_tokens(); ++id) {
    bytes_ += bytes_of(id);
    bytes_begin_.push_back(bytes_.size());
  }
}

std::string Tokenizer::bytes_of(TokenId id) const {
  const std::string_view text = vocab_.text(id);
  switch (vocab_.type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined:
      return std::string(text);
    case TokenType::kByte:
      if (const std::optional<char> byte = parse_byte_token(text)) return std::string(1, *byte);
      return std::string(text);
    case TokenType::kNormal:
      if (vocab_.model() == VocabModel::kSentencePiece) return unescape_spaces(text);
      return decode_byte_alphabet(text).value_or(std::string(text));
    case TokenType::kUnused:
    case TokenType::kUndefined:
      return {};
  }
  return {};
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  const std::vector<Fragment> fragments =
      (options.parse_special ? all_special_ : user_defined_).split(text, options.plain_at);
  const bool starts_with_bos = !fragments.empty() && fragments.front().token == vocab_.bos();
  if (options.add_special && adds_bos_ && !starts_with_bos) ids.push_back(vocab_.bos());
  bool is_after_special = true;
  for (const Fragment& fragment : fragments) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
    } else {
      encode_plain(fragment.text, is_after_special, ids);
    }
    is_after_special = fragment.token != kNoToken;
  }
  if (options.add_special && adds_eos_ && (ids.empty() || ids.back() != vocab_.eos()))
    ids.push_back(vocab_.eos());
  return ids;
}

void Tokenizer::encode_plain(std::string_view text, bool is_after_special, std::vector<TokenId>& ids) const {
  if (const auto* bpe = std::get_if<BpeModel>(&model_)) {
    bpe->encode(text, ids);
  } else {
    std::get<SpmModel>(model_).encode(text, adds_space_prefix_ && is_after_special, ids);
  }
}

std::string_view Tokenizer::decode_token(TokenId id, bool render_special) const {
  if (!vocab_.contains(id) || (!render_special && vocab_.is_hidden(id))) return {};
  const auto index = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(bytes_begin_[index], bytes_begin_[index + 1] - bytes_begin_[index]);
}

std::string_view Tokenizer::decode_next(TokenId id, bool render_special, bool& at_text_start) const {
  std::string_view bytes = decode_token(id, render_special);
  const bool is_special = !vocab_.contains(id) || vocab_.is_special(id);
  if (adds_space_prefix_ && at_text_start && !is_special && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_text_start = is_special;
  return bytes;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string text;
  bool at_text_start = true;
  for (const TokenId id : ids) text += decode_next(id, render_special, at_text_start);
  return text;
}

}  // namespace kvasir::text
