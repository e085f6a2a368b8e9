#include "text/gguf_pipeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <string_view>

#include "text/byte_tokens.h"
#include "text/character_bpe.h"
#include "text/charsmap.h"
#include "text/hf/decoders.h"
#include "text/unigram.h"
#include "text/wordpiece.h"

namespace kvasir::text {
namespace {

constexpr std::string_view kContinuing = "##";  // what BERT's own vocabularies write; files have it off
constexpr TokenId kBertSeparator = 102;         // of files that name none

// Pre-tokenizers whose words are characters, though tokenizer.ggml.model is "gpt2".
constexpr std::array<std::string_view, 3> kCharacterPres = {"granite-embed-multi-311m", "sarvam-moe",
                                                            "whitespace"};

TokenizerParts::TokenBytes bytes_by(const Vocab& vocab, hf::Decoder decoder) {
  return [&vocab, decoder = std::move(decoder)](TokenId id, bool at_text_start) -> std::string {
    const std::string text(vocab.text(id));
    if (vocab.is_special(id)) return text;
    if (vocab.type(id) == TokenType::kByte) {
      const auto byte = parse_byte_token(text);
      return byte ? std::string(1, *byte) : text;
    }
    if (vocab.type(id) != TokenType::kNormal) return {};
    hf::DecodedToken token = {.text = text, .at_text_start = at_text_start};
    decoder(token);
    return token.text;
  };
}

TokenizerParts make_parts(std::unique_ptr<const Vocab> vocab, Pipeline::Parts pipeline, hf::Decoder decoder) {
  std::vector<SpecialToken> special = special_tokens_in(*vocab);
  TokenizerParts::TokenBytes bytes = bytes_by(*vocab, std::move(decoder));
  return {.vocab = std::move(vocab),
          .model = Pipeline(std::move(pipeline)),
          .special_tokens = std::move(special),
          .token_bytes = std::move(bytes)};
}

// BERT's form: [CLS] a [SEP], [CLS] a [SEP] b [SEP].
SequenceFrame bert_frame(const Vocab& vocab, const VocabData& data) {
  const TokenId usual = vocab.contains(kBertSeparator) ? kBertSeparator : kNoToken;
  const TokenId separator = data.separator != kNoToken ? data.separator : usual;
  const TokenId first = data.classification != kNoToken ? data.classification : vocab.bos();
  SequenceFrame frame;
  if (data.add_bos.value_or(true) && first != kNoToken) frame.before.push_back(first);
  if (data.add_separator.value_or(true) && separator != kNoToken) frame.after.push_back(separator);
  if (first == kNoToken || separator == kNoToken) return frame;
  frame.pair = {{.token = first},
                {.text_index = 0},
                {.token = separator},
                {.text_index = 1, .token_type = 1},
                {.token = separator, .token_type = 1}};
  return frame;
}

TokenizerParts make_bert(std::unique_ptr<const Vocab> vocab, const VocabData& data) {
  WordPieceVocab pieces = {.unknown = vocab->unknown()};
  for (TokenId id = 0; id < vocab->num_tokens(); ++id) {
    std::string_view text = vocab->text(id);
    const bool at_word_start = vocab->is_special(id) || text.starts_with(kSpaceMark);
    if (text.starts_with(kSpaceMark)) text.remove_prefix(kSpaceMark.size());
    (at_word_start ? pieces.at_word_start : pieces.inside_words).emplace_back(text, id);
  }
  const bool lowercase = data.lowercase.value_or(true);
  Pipeline::Parts pipeline = {
      .normalizer = hf::bert_normalizer({.lowercase = lowercase, .strip_accents = data.strip_accents}),
      .pre_tokenizer = hf::bert_pre_tokenizer(),
      .model = std::make_unique<WordPieceModel>(pieces)};
  const auto mark_kind = [](hf::DecodedToken& token) {
    const bool at_word_start = token.text.starts_with(kSpaceMark);
    token.text = at_word_start ? token.text.substr(kSpaceMark.size()) : std::string(kContinuing) + token.text;
  };
  hf::Decoder decoder = hf::sequence(
      {mark_kind, hf::wordpiece_decoder(std::string(kContinuing), /*cleanup=*/true)});
  SequenceFrame frame = bert_frame(*vocab, data);
  TokenizerParts parts = make_parts(std::move(vocab), std::move(pipeline), std::move(decoder));
  parts.frame = std::move(frame);
  return parts;
}

// BOS and EOS around a text; RoBERTa's form for pairs where the model has both: <s> a </s></s> b </s>.
SequenceFrame bos_eos_frame(const Vocab& vocab, bool add_bos, bool add_eos) {
  SequenceFrame frame;
  if (add_bos && vocab.bos() != kNoToken) frame.before.push_back(vocab.bos());
  if (add_eos && vocab.eos() != kNoToken) frame.after.push_back(vocab.eos());
  if (frame.before.empty() || frame.after.empty()) return frame;
  const FramePart end = {.token = vocab.eos()};
  frame.pair = {{.token = vocab.bos()}, {.text_index = 0}, end, end, {.text_index = 1}, end};
  return frame;
}

bool has_inner_mark(const Vocab& vocab) {
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    const std::string_view text = vocab.text(id);
    const std::size_t mark = text.find(kSpaceMark, 1);
    if (vocab.type(id) == TokenType::kNormal && mark != std::string_view::npos &&
        !text.starts_with(kSpaceMark)) {
      return true;
    }
  }
  return false;
}

std::unique_ptr<const WordModel> make_unigram(const Vocab& vocab) {
  std::vector<UnigramPiece> pieces;
  UnigramOptions options = {.unknown = vocab.unknown()};
  for (TokenId id = 0; id < vocab.num_tokens(); ++id) {
    const TokenType type = vocab.type(id);
    const double score = vocab.score(id);
    options.byte_fallback = options.byte_fallback || type == TokenType::kByte;
    if (type == TokenType::kNormal) options.min_score = std::min(score, options.min_score.value_or(score));
    if (type == TokenType::kNormal || type == TokenType::kUnused) pieces.push_back({id, score});
    if (type == TokenType::kUserDefined) pieces.push_back({id, 0});  // above all others
  }
  return std::make_unique<UnigramModel>(vocab, pieces, options);
}

Result<TokenizerParts> make_t5(std::unique_ptr<const Vocab> vocab, const VocabData& data) {
  Pipeline::Parts pipeline = {.model = make_unigram(*vocab)};
  if (!data.charsmap.empty()) {
    KVASIR_TRY(Charsmap map, Charsmap::parse(data.charsmap));
    pipeline.normalizer = hf::precompiled(std::move(map));
  }
  const bool merges_spaces = data.merge_spaces.value_or(false);
  const bool adds_prefix = data.add_space_prefix.value_or(true);
  const hf::PrependScheme scheme = merges_spaces || adds_prefix ? hf::PrependScheme::kAlways
                                                                : hf::PrependScheme::kNever;
  pipeline.pre_tokenizer = hf::metaspace(std::string(kSpaceMark), scheme, /*splits=*/!has_inner_mark(*vocab));
  if (merges_spaces) pipeline.pre_tokenizer = hf::sequence({hf::whitespace_split(), pipeline.pre_tokenizer});
  SequenceFrame frame = bos_eos_frame(*vocab, data.add_bos.value_or(false), data.add_eos.value_or(true));
  hf::Decoder decoder = hf::metaspace_decoder(std::string(kSpaceMark), scheme == hf::PrependScheme::kAlways);
  TokenizerParts parts = make_parts(std::move(vocab), std::move(pipeline), std::move(decoder));
  parts.frame = std::move(frame);
  return parts;
}

std::vector<std::pair<std::string, std::string>> split_merges(const std::vector<std::string>& merges) {
  std::vector<std::pair<std::string, std::string>> pairs;
  pairs.reserve(merges.size());
  for (const std::string& merge : merges) {
    const std::size_t space = merge.find(' ', 1);
    if (space != std::string::npos) pairs.emplace_back(merge.substr(0, space), merge.substr(space + 1));
  }
  return pairs;
}

Result<TokenizerParts> make_character_bpe(std::unique_ptr<const Vocab> vocab, const VocabData& data,
                                          const std::vector<std::string>& merges) {
  if (merges.empty()) {
    return make_error(ErrorKind::kBadFile, "tokenizer.ggml.merges has 0 entries (this tokenizer needs some)");
  }
  const bool splits_spaces = data.pre == "whitespace";
  KVASIR_TRY(auto model, CharacterBpeModel::create({*vocab, {}}, split_merges(merges),
                                                   {.unknown = vocab->unknown(),
                                                    .fuse_unknown = true,
                                                    .byte_fallback = true,
                                                    .keeps_known_breaks = true,
                                                    .skips_unknown_merges = true}));
  Pipeline::Parts pipeline = {.model = std::move(model)};
  hf::Decoder decoder = [](hf::DecodedToken&) {};
  if (splits_spaces) {
    if (data.lowercase.value_or(false)) pipeline.normalizer = hf::lowercase();
    pipeline.pre_tokenizer = hf::whitespace_split();
  } else {
    pipeline.normalizer = hf::replace(hf::find_text(" "), std::string(kSpaceMark));
    pipeline.pre_tokenizer = hf::split(hf::find_text("\n"), hf::SplitBehavior::kContiguous);
    decoder = hf::metaspace_decoder(std::string(kSpaceMark), /*strips_first=*/false);
  }
  // Early Gemma 4 files say that they want no BOS, which the model does.
  const bool always_bos = vocab->model() == VocabModel::kCharacterBpe;
  SequenceFrame frame = bos_eos_frame(*vocab, always_bos || data.add_bos.value_or(!splits_spaces),
                                      data.add_eos.value_or(false));
  TokenizerParts parts = make_parts(std::move(vocab), std::move(pipeline), std::move(decoder));
  parts.frame = std::move(frame);
  return parts;
}

}  // namespace

bool is_character_bpe(const VocabData& data) {
  return data.model == "gemma4" ||
         (data.model == "gpt2" && std::ranges::find(kCharacterPres, data.pre) != kCharacterPres.end());
}

Result<TokenizerParts> make_gguf_pipeline(std::unique_ptr<const Vocab> vocab, const VocabData& data,
                                          const std::vector<std::string>& merges) {
  if (is_character_bpe(data)) return make_character_bpe(std::move(vocab), data, merges);
  if (vocab->model() == VocabModel::kWordPiece) return make_bert(std::move(vocab), data);
  return make_t5(std::move(vocab), data);
}

}  // namespace kvasir::text
