#include "text/tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_alphabet.h"
#include "text/byte_tokens.h"
#include "text/gguf_pipeline.h"

namespace kvasir::text {
namespace {

SpecialMatcher make_matcher(const TokenizerParts& parts, bool include_hidden) {
  std::vector<SpecialToken> tokens = parts.special_tokens;
  if (!include_hidden) std::erase_if(tokens, [](const SpecialToken& token) { return token.is_hidden; });
  return SpecialMatcher(std::move(tokens));
}

SequenceFrame frame_of(const Vocab& vocab, bool adds_bos, bool adds_eos) {
  SequenceFrame frame;
  if (adds_bos && vocab.bos() != kNoToken) frame.before.push_back(vocab.bos());
  if (adds_eos && vocab.eos() != kNoToken) frame.after.push_back(vocab.eos());
  if (frame.before.empty() || frame.after.empty()) return frame;
  const FramePart end = {.token = vocab.eos()};  // RoBERTa's form for pairs
  frame.pair = {{.token = vocab.bos()}, {.text_index = 0}, end, end, {.text_index = 1}, end};
  return frame;
}

// Whether the text begins with these tokens already.
bool begins_with(const std::vector<Fragment>& fragments, const std::vector<TokenId>& tokens) {
  if (fragments.size() < tokens.size()) return false;
  return std::ranges::equal(std::span(fragments).first(tokens.size()), tokens, {}, &Fragment::token);
}

bool ends_with(const std::vector<TokenId>& ids, const std::vector<TokenId>& tokens) {
  if (ids.size() < tokens.size()) return false;
  return std::ranges::equal(std::span(ids).last(tokens.size()), tokens);
}

// Runs of spaces that are tokens of a user's are also cut where the text has the marks of spaces instead.
std::vector<SpecialToken> with_marked_spaces(std::vector<SpecialToken> tokens) {
  const std::size_t count = tokens.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (tokens[i].text.empty() || tokens[i].text.find_first_not_of(' ') != std::string::npos) continue;
    SpecialToken marked = tokens[i];
    marked.text.clear();
    for (std::size_t space = 0; space < tokens[i].text.size(); ++space) marked.text += kSpaceMark;
    tokens.push_back(std::move(marked));
  }
  return tokens;
}

bool has_mark_at(std::string_view text, std::size_t at) { return text.substr(at).starts_with(kSpaceMark); }

// Whether a mark of a space begins here, with no other beside it.
bool is_lone_mark(std::string_view text, std::size_t at) {
  constexpr std::size_t kSize = kSpaceMark.size();
  return has_mark_at(text, at) && !has_mark_at(text, std::min(at + kSize, text.size())) &&
         (at < kSize || !has_mark_at(text, at - kSize));
}

bool has_lone_mark(std::string_view text) {
  for (std::size_t at = 0; (at = text.find(kSpaceMark, at)) != text.npos; at += kSpaceMark.size()) {
    if (is_lone_mark(text, at)) return true;
  }
  return false;
}

// A text in which lone marks are the spaces that they mean; positions move along.
struct UnmarkedText {
  std::string text;
  std::vector<std::size_t> plain_at;

  UnmarkedText(std::string_view marked, std::span<const std::size_t> positions) {
    text.reserve(marked.size());
    auto next = positions.begin();
    for (std::size_t at = 0; at < marked.size();) {
      const bool is_mark = is_lone_mark(marked, at);
      const std::size_t size = is_mark ? kSpaceMark.size() : 1;
      for (; next != positions.end() && *next < at + size; ++next) {
        if (*next == at) plain_at.push_back(text.size());
      }
      text.push_back(is_mark ? ' ' : marked[at]);
      at += size;
    }
  }
};

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
  VocabData rest = {.model = data.model,
                    .pre = data.pre,
                    .classification = data.classification,
                    .separator = data.separator,
                    .add_bos = data.add_bos,
                    .add_eos = data.add_eos,
                    .add_space_prefix = data.add_space_prefix,
                    .add_separator = data.add_separator,
                    .merge_spaces = data.merge_spaces,
                    .lowercase = data.lowercase,
                    .strip_accents = data.strip_accents,
                    .charsmap = std::exchange(data.charsmap, {})};
  KVASIR_TRY(Vocab created, Vocab::create(std::move(data)));
  auto vocab = std::make_unique<const Vocab>(std::move(created));
  if (vocab->model() == VocabModel::kSentencePiece) {
    const Vocab& borrowed = *vocab;
    return std::make_unique<Tokenizer>(
        TokenizerParts{.vocab = std::move(vocab),
                       .model = SpmModel(borrowed),
                       .frame = frame_of(borrowed, rest.add_bos.value_or(true), rest.add_eos.value_or(false)),
                       .adds_space_prefix = rest.add_space_prefix.value_or(true),
                       .special_tokens = with_marked_spaces(special_tokens_in(borrowed))});
  }
  if (vocab->model() != VocabModel::kByteLevelBpe || is_character_bpe(rest)) {
    KVASIR_TRY(TokenizerParts parts, make_gguf_pipeline(std::move(vocab), rest, merges));
    return std::make_unique<Tokenizer>(std::move(parts));
  }
  KVASIR_TRY(const Pretokenizer pretokenizer, Pretokenizer::create(rest.pre));
  KVASIR_TRY(BpeModel bpe, BpeModel::create(*vocab, merges, pretokenizer));
  const Vocab& borrowed = *vocab;
  return std::make_unique<Tokenizer>(
      TokenizerParts{.vocab = std::move(vocab),
                     .model = std::move(bpe),
                     .frame = frame_of(borrowed, rest.add_bos.value_or(pretokenizer.adds_bos()),
                                       rest.add_eos.value_or(false)),
                     .special_tokens = special_tokens_in(borrowed)});
}

Tokenizer::Tokenizer(TokenizerParts parts)
    : parts_(std::move(parts)),
      is_pipeline_(std::holds_alternative<Pipeline>(parts_.model)),
      user_defined_(make_matcher(parts_, /*include_hidden=*/false)),
      all_special_(make_matcher(parts_, /*include_hidden=*/true)) {
  set_token_bytes();
}

bool Tokenizer::frame_has(const std::vector<TokenId>& tokens, TokenId id) {
  return id != kNoToken && std::ranges::find(tokens, id) != tokens.end();
}

void Tokenizer::set_token_bytes() {
  bytes_begin_.reserve(static_cast<std::size_t>(vocab().num_tokens()) + 1);
  bytes_begin_.push_back(0);
  for (TokenId id = 0; id < vocab().num_tokens(); ++id) {
    const std::string bytes = bytes_of(id);
    bytes_ += bytes;
    bytes_begin_.push_back(bytes_.size());
    if (!parts_.token_bytes) continue;
    if (std::string first = parts_.token_bytes(id, /*at_text_start=*/true); first != bytes) {
      first_bytes_.emplace(id, std::move(first));
    }
  }
}

std::string Tokenizer::bytes_of(TokenId id) const {
  if (parts_.token_bytes) return parts_.token_bytes(id, /*at_text_start=*/false);
  const std::string_view text = vocab().text(id);
  switch (vocab().type(id)) {
    case TokenType::kControl:
    case TokenType::kUnknown:
    case TokenType::kUserDefined:
      return std::string(text);
    case TokenType::kByte:
      if (const std::optional<char> byte = parse_byte_token(text)) return std::string(1, *byte);
      return std::string(text);
    case TokenType::kNormal:
      if (vocab().model() == VocabModel::kSentencePiece) return unescape_spaces(text);
      return decode_byte_alphabet(text).value_or(std::string(text));
    case TokenType::kUnused:
    case TokenType::kUndefined:
      return {};
  }
  return {};
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (std::holds_alternative<SpmModel>(parts_.model) && has_lone_mark(text)) {
    const UnmarkedText unmarked(text, options.plain_at);
    options.plain_at = unmarked.plain_at;
    return encode(unmarked.text, options);
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 2);
  const std::vector<Fragment> fragments = (options.parse_special ? all_special_ : user_defined_)
                                              .split(text, options.plain_at);
  const SequenceFrame& frame = parts_.frame;
  if (options.add_special && !begins_with(fragments, frame.before)) ids = frame.before;
  bool is_after_special = true;
  for (const Fragment& fragment : fragments) {
    if (fragment.token != kNoToken) {
      ids.push_back(fragment.token);
    } else {
      encode_plain(fragment.text, is_after_special, fragment.text.data() == text.data(), ids);
    }
    is_after_special = fragment.token != kNoToken;
  }
  if (options.add_special && !ends_with(ids, frame.after)) {
    ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  }
  return ids;
}

std::optional<EncodedPair> Tokenizer::encode_pair(std::string_view first, std::string_view second) const {
  if (parts_.frame.pair.empty()) return std::nullopt;
  EncodedPair pair;
  for (const FramePart& part : parts_.frame.pair) {
    if (part.token != kNoToken) {
      pair.ids.push_back(part.token);
    } else {
      const std::vector<TokenId> ids = encode(part.text_index == 0 ? first : second, {.add_special = false});
      pair.ids.insert(pair.ids.end(), ids.begin(), ids.end());
    }
    pair.token_types.resize(pair.ids.size(), part.token_type);
  }
  return pair;
}

void Tokenizer::encode_plain(std::string_view text, bool is_after_special, bool at_text_start,
                             std::vector<TokenId>& ids) const {
  if (const auto* bpe = std::get_if<BpeModel>(&parts_.model)) {
    bpe->encode(text, ids);
  } else if (const auto* spm = std::get_if<SpmModel>(&parts_.model)) {
    spm->encode(text, parts_.adds_space_prefix && is_after_special, ids);
  } else {
    std::get<Pipeline>(parts_.model).encode(text, at_text_start, ids);
  }
}

std::string_view Tokenizer::decode_token(TokenId id, bool render_special) const {
  if (!vocab().contains(id) || (!render_special && vocab().is_hidden(id))) return {};
  const auto index = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(bytes_begin_[index], bytes_begin_[index + 1] - bytes_begin_[index]);
}

std::string_view Tokenizer::decode_next(TokenId id, bool render_special, bool& at_text_start) const {
  std::string_view bytes = decode_token(id, render_special);
  const bool is_special = !vocab().contains(id) || vocab().is_special(id);
  if (is_pipeline_) {
    if (!vocab().contains(id) || (vocab().is_hidden(id) && !render_special)) return {};
    const auto first = at_text_start ? first_bytes_.find(id) : first_bytes_.end();
    at_text_start = false;
    return first == first_bytes_.end() ? bytes : std::string_view(first->second);
  }
  if (parts_.adds_space_prefix && at_text_start && !is_special && bytes.starts_with(' '))
    bytes.remove_prefix(1);
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
