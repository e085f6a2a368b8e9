#include "eval/gate/schema_reader.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grammar/match/matcher.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/json_schema.h"
#include "grammar/vocabulary.h"

namespace kvasir::eval {
namespace {

// Token i is the byte i.
std::shared_ptr<const grammar::Vocabulary> bytes_as_tokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  return std::make_shared<const grammar::Vocabulary>(std::vector<std::string_view>(tokens.begin(), tokens.end()));
}

// Counts what JSON has between its texts and numbers.
class PlaceCount {
 public:
  void add(char byte) {
    if (in_string_) {
      if (is_escaped_) {
        is_escaped_ = false;
      } else if (byte == '\\') {
        is_escaped_ = true;
      } else if (byte == '"') {
        in_string_ = false;
      }
      return;
    }
    in_string_ = byte == '"';
    count_ += std::string_view("{}[],:").contains(byte) ? 1 : 0;
  }
  std::size_t count() const { return count_; }

 private:
  bool in_string_ = false, is_escaped_ = false;
  std::size_t count_ = 0;
};

TokenId token_of(char byte) { return static_cast<TokenId>(static_cast<unsigned char>(byte)); }

}  // namespace

Result<SchemaReader> SchemaReader::create(std::string_view schema) {
  static const auto vocabulary = bytes_as_tokens();
  auto store = std::make_unique<grammar::TermStore>();
  KVASIR_TRY(grammar::SchemaGrammar made, grammar::grammar_from_schema(*store, schema));
  KVASIR_TRY(auto guide, grammar::CompiledGrammar::create(std::move(store), std::move(made.grammar), vocabulary));
  return SchemaReader(std::move(guide));
}

bool SchemaReader::is_value(std::string_view text) const {
  grammar::GrammarMatcher matcher(guide_);
  return std::ranges::all_of(text, [&](char byte) { return matcher.accept(token_of(byte)); }) &&
         matcher.is_accepting();
}

FirstError SchemaReader::first_error(std::string_view text) const {
  const std::size_t begin = text.find_first_of("{[");
  if (begin == text.npos) return {.kind = FirstError::Kind::kNoJson};
  grammar::GrammarMatcher matcher(guide_);
  PlaceCount place;
  for (const char byte : text.substr(begin)) {
    if (!matcher.accept(token_of(byte))) {
      if (matcher.is_accepting()) return {};
      return {.kind = FirstError::Kind::kWrong, .place = place.count()};
    }
    place.add(byte);
  }
  return {.kind = matcher.is_accepting() ? FirstError::Kind::kNone : FirstError::Kind::kCut};
}

}  // namespace kvasir::eval
