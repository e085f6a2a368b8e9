#include "text/hf/model_json.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>

#include "base/printable.h"
#include "text/character_bpe.h"
#include "text/unigram.h"
#include "text/wordpiece.h"

namespace kvasir::text::hf {
namespace {

using Kind = ModelJson::Kind;

// Every word is one token.
class WordLevelModel final : public WordModel {
 public:
  WordLevelModel(ModelVocab vocab, TokenId unknown) : vocab_(std::move(vocab)), unknown_(unknown) {}

  void encode(std::string_view word, std::vector<TokenId>& ids) const override {
    const TokenId id = vocab_.find(word);
    if (id != kNoToken || unknown_ != kNoToken) ids.push_back(id != kNoToken ? id : unknown_);
  }

 private:
  ModelVocab vocab_;
  TokenId unknown_;
};

// Early files have no type: their fields tell.
Result<Kind> read_kind(const JsonView& json) {
  KVASIR_TRY(const std::string type, json.string_at("type", ""));
  if (type == "BPE" || (type.empty() && json.find("merges"))) return Kind::kBpe;
  if (type == "Unigram" || (type.empty() && json.find("unk_id"))) return Kind::kUnigram;
  if (type == "WordPiece" || (type.empty() && json.find("max_input_chars_per_word"))) return Kind::kWordPiece;
  if (type == "WordLevel" || type.empty()) return Kind::kWordLevel;
  return json.fail(fmt::format("the model '{}' is not known (BPE, Unigram, WordPiece and WordLevel are)",
                               printable(type)));
}

// [["text", score], ...]; the place is the id.
Status read_scored_vocab(const JsonView& json, ModelJson& model) {
  simdjson::dom::array entries;
  if (json.value().get_array().get(entries) != simdjson::SUCCESS) return json.fail("an array is wanted here");
  for (const simdjson::dom::element entry : entries) {
    simdjson::dom::array pair;
    std::string_view text;
    double score = 0;
    if (entry.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get_string().get(text) != simdjson::SUCCESS ||
        pair.at(1).get_double().get(score) != simdjson::SUCCESS) {
      return json.fail(fmt::format("entry {} is not a text and a score", model.vocab.size()));
    }
    model.vocab.emplace_back(text, static_cast<std::int64_t>(model.vocab.size()));
    model.scores.push_back(score);
  }
  return {};
}

Status read_vocab(const JsonView& json, ModelJson& model) {
  simdjson::dom::object entries;
  if (json.value().get_object().get(entries) != simdjson::SUCCESS)
    return json.fail("an object is wanted here");
  for (const auto& [text, value] : entries) {
    std::int64_t id = 0;
    if (value.get_int64().get(id) != simdjson::SUCCESS) {
      return json.fail(fmt::format("the id of '{}' is not a whole number", printable(text)));
    }
    model.vocab.emplace_back(text, id);
  }
  return {};
}

// "a b", or ["a", "b"].
Result<std::vector<std::pair<std::string, std::string>>> read_merges(const JsonView& json) {
  simdjson::dom::array entries;
  if (json.value().get_array().get(entries) != simdjson::SUCCESS) return json.fail("an array is wanted here");
  std::vector<std::pair<std::string, std::string>> merges;
  for (const simdjson::dom::element entry : entries) {
    std::string_view left, right;
    simdjson::dom::array pair;
    if (entry.get_string().get(left) == simdjson::SUCCESS) {
      const std::size_t space = left.find(' ');
      if (space == std::string_view::npos || left.find(' ', space + 1) != std::string_view::npos) {
        return json.fail(fmt::format("merge {} is not two parts and a space", merges.size()));
      }
      right = left.substr(space + 1);
      left = left.substr(0, space);
    } else if (entry.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
               pair.at(0).get_string().get(left) != simdjson::SUCCESS ||
               pair.at(1).get_string().get(right) != simdjson::SUCCESS) {
      return json.fail(fmt::format("merge {} is not two texts", merges.size()));
    }
    merges.emplace_back(left, right);
  }
  return merges;
}

// The unknown token that the file names; kNoToken when it names none.
Result<TokenId> read_unknown(const JsonView& json, const ModelVocab& vocab, std::string_view usual) {
  KVASIR_TRY(const std::string text, json.string_at("unk_token", usual));
  if (text.empty()) return kNoToken;
  const TokenId id = vocab.find(text);
  // A default need not be there; a token that the file names must.
  if (id == kNoToken && json.find("unk_token")) {
    return json.fail(fmt::format("unk_token '{}' is no token of the model", printable(text)));
  }
  return id;
}

Result<std::unique_ptr<const WordModel>> make_bpe(const JsonView& json, ModelVocab vocab) {
  if (const auto dropout = json.find("dropout")) {
    double rate = 1;
    if (dropout->value().get_double().get(rate) != simdjson::SUCCESS || rate != 0) {
      return dropout->fail("a dropout gives other ids each time: not supported");
    }
  }
  CharacterBpeOptions options;
  KVASIR_TRY(options.unknown, read_unknown(json, vocab, ""));
  KVASIR_TRY(options.fuse_unknown, json.boolean_at("fuse_unk", false));
  KVASIR_TRY(options.byte_fallback, json.boolean_at("byte_fallback", false));
  KVASIR_TRY(options.keeps_known_words, json.boolean_at("ignore_merges", false));
  KVASIR_TRY(options.continuing_prefix, json.string_at("continuing_subword_prefix", ""));
  KVASIR_TRY(options.end_of_word_suffix, json.string_at("end_of_word_suffix", ""));
  KVASIR_TRY(const JsonView list, json.at("merges"));
  KVASIR_TRY(const auto merges, read_merges(list));
  auto model = CharacterBpeModel::create(std::move(vocab), merges, std::move(options));
  if (!model) return fail_at(list, model.error());
  return model;
}

Result<std::unique_ptr<const WordModel>> make_unigram(const JsonView& json, const ModelJson& model,
                                                      const ModelVocab& vocab) {
  UnigramOptions options;
  KVASIR_TRY(const std::int64_t unknown, json.integer_at("unk_id", -1));
  if (unknown < -1 || unknown >= static_cast<std::int64_t>(model.vocab.size())) {
    return json.fail(fmt::format("unk_id is {}, outside the {} pieces", unknown, model.vocab.size()));
  }
  options.unknown = static_cast<TokenId>(unknown);
  if (unknown < 0) options.unknown = kNoToken;
  KVASIR_TRY(options.byte_fallback, json.boolean_at("byte_fallback", false));
  std::vector<UnigramPiece> pieces;
  pieces.reserve(model.vocab.size());
  for (std::size_t i = 0; i < model.vocab.size(); ++i) {
    if (model.vocab[i].first.empty()) continue;
    pieces.push_back({static_cast<TokenId>(model.vocab[i].second), model.scores[i]});
  }
  return std::make_unique<UnigramModel>(vocab.vocab(), pieces, options);
}

Result<std::unique_ptr<const WordModel>> make_wordpiece(const JsonView& json, const ModelJson& model,
                                                        const ModelVocab& vocab) {
  WordPieceVocab pieces;
  KVASIR_TRY(pieces.unknown, read_unknown(json, vocab, "[UNK]"));
  KVASIR_TRY(const std::string prefix, json.string_at("continuing_subword_prefix", "##"));
  KVASIR_TRY(const std::int64_t most, json.integer_at("max_input_chars_per_word", 100));
  if (most < 0) return json.fail(fmt::format("max_input_chars_per_word is {} (0 or more is allowed)", most));
  pieces.max_word_characters = static_cast<std::size_t>(most);
  for (const auto& [text, id] : model.vocab) {
    const std::string_view view = text;
    pieces.at_word_start.emplace_back(view, static_cast<TokenId>(id));
    if (!view.starts_with(prefix)) continue;
    pieces.inside_words.emplace_back(view.substr(prefix.size()), static_cast<TokenId>(id));
  }
  return std::make_unique<WordPieceModel>(pieces);
}

}  // namespace

Result<ModelJson> read_model(const JsonView& json) {
  ModelJson model;
  KVASIR_TRY(model.kind, read_kind(json));
  KVASIR_TRY(const JsonView vocab, json.at("vocab"));
  KVASIR_CHECKED(model.kind == Kind::kUnigram ? read_scored_vocab(vocab, model) : read_vocab(vocab, model));
  return model;
}

Result<std::unique_ptr<const WordModel>> make_word_model(const JsonView& json, const ModelJson& model,
                                                         ModelVocab vocab) {
  switch (model.kind) {
    case Kind::kBpe:
      return make_bpe(json, std::move(vocab));
    case Kind::kUnigram:
      return make_unigram(json, model, vocab);
    case Kind::kWordPiece:
      return make_wordpiece(json, model, vocab);
    case Kind::kWordLevel:
      break;
  }
  KVASIR_TRY(const TokenId unknown, read_unknown(json, vocab, "<unk>"));
  return std::make_unique<WordLevelModel>(std::move(vocab), unknown);
}

}  // namespace kvasir::text::hf
