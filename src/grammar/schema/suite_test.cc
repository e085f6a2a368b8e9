// The JSON-Schema-Test-Suite (https://github.com/json-schema-org/JSON-Schema-Test-Suite, MIT), drafts 4 to 2020-12, as
// scripts/check_schema_suite.py writes it.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"
#include "grammar/schema/json_schema.h"

namespace kvasir::grammar::schema_suite_test {
namespace {

std::shared_ptr<const Vocabulary> byte_vocabulary() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  const std::vector<std::string_view> views(tokens.begin(), tokens.end());
  return std::make_shared<const Vocabulary>(views);
}

bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  for (const char byte : text) {
    if (!matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)))) return false;
  }
  return matcher.is_accepting();
}

// Names of schemas with instances; an empty instance: the schema is refused.
std::set<std::pair<std::string, std::string>> listed() {
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/schema/not_accepted.tsv");
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::size_t first = line.find('\t');
    const std::size_t second = line.find('\t', first + 1);
    EXPECT_LT(second + 1, line.size()) << "no reason: " << line;
    pairs.emplace(line.substr(0, first), line.substr(first + 1, second - first - 1));
  }
  return pairs;
}

TEST(SchemaSuite, NoInvalidInstancePassesAndEveryOtherIsListed) {
  const auto vocabulary = byte_vocabulary();
  const auto not_accepted = listed();
  std::set<std::pair<std::string, std::string>> met;
  std::ifstream file(KVASIR_SOURCE_DIR "/tests/schema/suite.jsonl");
  std::size_t num_instances = 0;
  for (std::string line; std::getline(file, line);) {
    simdjson::ondemand::parser parser;
    const simdjson::padded_string padded(line);
    simdjson::ondemand::document document = parser.iterate(padded);
    const std::string name(document["name"].get_string().value());
    const std::string schema(simdjson::to_json_string(document["schema"].value()).value());
    auto store = std::make_unique<TermStore>();
    auto made = grammar_from_schema(*store, schema);
    const auto grammar =
        made ? CompiledGrammar::create(std::move(store), std::move(made->grammar), vocabulary) : std::unexpected(made.error());
    if (!grammar) {
      EXPECT_TRUE(not_accepted.contains({name, ""})) << name << ": " << grammar.error().message;
      met.emplace(name, "");
      continue;
    }
    for (auto test : document["tests"].get_array()) {
      const bool is_valid = test["valid"].get_bool();
      const std::string text(simdjson::to_json_string(test["data"].value()).value());
      const bool is_accepted = accepts(*grammar, text);
      ++num_instances;
      EXPECT_TRUE(is_valid || !is_accepted) << name << ": accepts " << text;
      if (!is_valid || is_accepted) continue;
      EXPECT_TRUE(not_accepted.contains({name, text})) << name << ": rejects " << text;
      met.emplace(name, text);
    }
  }
  EXPECT_GT(num_instances, 5000U);
  for (const auto& [name, text] : not_accepted) {
    EXPECT_TRUE(met.contains({name, text})) << name << ": listed, but accepts " << text;
  }
}

}  // namespace
}  // namespace kvasir::grammar::schema_suite_test
