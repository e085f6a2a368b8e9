#include "grammar/shipped/shipped_grammars.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "grammar/ebnf/ebnf_grammar.h"
#include "grammar/testing/byte_matcher.h"

namespace kvasir::grammar::shipped_grammars_test {
namespace {

void check(std::string_view name, const std::vector<std::string_view>& valid,
           const std::vector<std::string_view>& invalid) {
  const auto text = shipped_grammar(name);
  ASSERT_TRUE(text.has_value()) << name;
  for (const EbnfDialect dialect : {EbnfDialect::kGbnf, EbnfDialect::kXGrammar}) {
    const auto grammar = compile_for_bytes(
        [&](TermStore& store) { return grammar_from_ebnf(store, *text, {.dialect = dialect, .tokens = {}}); });
    ASSERT_TRUE(grammar.has_value()) << name << ": " << grammar.error().message;
    for (const std::string_view one : valid) EXPECT_TRUE(accepts_bytes(*grammar, one)) << name << " takes not: " << one;
    for (const std::string_view one : invalid) EXPECT_FALSE(accepts_bytes(*grammar, one)) << name << " takes: " << one;
  }
}

TEST(ShippedGrammars, AreByName) {
  ASSERT_EQ(shipped_grammars().size(), 3u);
  EXPECT_FALSE(shipped_grammar("yaml").has_value());
}

TEST(ShippedGrammars, JsonIsJson) {
  check("json",
        {"{}", "[]", "{ \"a\" : [1, -2.5e+3, null],\n  \"b\":{\"c\":\"\\u00e9\\ud83d\\ude00\\n\"}}", "\"日本\"", "true", "0"},
        {"", "{", "[1,]", "01", "\"\\ud83d\"", "\"\\x\"", "{a:1}", " 1", "1 ", "\"\n\""});
}

TEST(ShippedGrammars, ArithmeticIsATermOfNumbers) {
  check("arithmetic", {"1", "1+2*3", "-(1.5 - 2) / 4", "((2))"}, {"", "1+", "(1", "1  + 2", "1.", "a"});
}

TEST(ShippedGrammars, SqlIsASelectStatement) {
  check("sql_select",
        {"SELECT * FROM users", "SELECT DISTINCT u.name, COUNT(*) AS n FROM users AS u LEFT JOIN orders AS o ON u.id = o.user_id "
         "WHERE o.total >= 10.5 AND u.name LIKE 'A''%' GROUP BY u.name HAVING COUNT(*) > 2 ORDER BY n DESC, u.name LIMIT 10 OFFSET 5;",
         "SELECT a FROM t WHERE b IN (SELECT b FROM s UNION ALL SELECT 1 FROM r) OR NOT (c IS NOT NULL)",
         "SELECT CASE WHEN a > 1 THEN 'x' ELSE NULL END AS k FROM (SELECT a FROM t) AS q\nWHERE a BETWEEN 1 AND 2 + 3"},
        {"", "SELECT", "SELECT FROM t", "DELETE FROM t", "SELECT * FROM t WHERE", "SELECT * FROM t; DROP", "SELECT a FROM WHERE",
         "SELECT a FROM t LIMIT x"});
}

}  // namespace
}  // namespace kvasir::grammar::shipped_grammars_test
