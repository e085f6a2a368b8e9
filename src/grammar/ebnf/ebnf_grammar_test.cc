#include "grammar/ebnf/ebnf_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/match/matcher.h"
#include "grammar/testing/byte_matcher.h"
#include "grammar/testing/time_bar.h"

namespace kvasir::grammar::ebnf_grammar_test {
namespace {

constexpr EbnfDialect kGbnf = EbnfDialect::kGbnf;
constexpr EbnfDialect kXGrammar = EbnfDialect::kXGrammar;

// "<tok>" is the token 7.
TokenNames token_names() {
  return {.find = [](std::string_view name) { return name == "<tok>" ? std::optional<TokenId>(7) : std::nullopt; },
          .num_tokens = 256,
          .has_text = [](TokenId token) { return token != 1; }};
}

Result<std::shared_ptr<const CompiledGrammar>> compile(EbnfDialect dialect, std::string_view text) {
  return compile_for_bytes([&](TermStore& store) {
    return grammar_from_ebnf(store, text, {.dialect = dialect, .tokens = token_names()});
  });
}

void check(EbnfDialect dialect, std::string_view text, const std::vector<std::string_view>& valid,
           const std::vector<std::string_view>& invalid) {
  const auto grammar = compile(dialect, text);
  ASSERT_TRUE(grammar.has_value()) << text << ": " << grammar.error().message;
  for (const std::string_view one : valid) EXPECT_TRUE(accepts_bytes(*grammar, one)) << text << " takes not: " << one;
  for (const std::string_view one : invalid) EXPECT_FALSE(accepts_bytes(*grammar, one)) << text << " takes: " << one;
}

void check_both(std::string_view text, const std::vector<std::string_view>& valid,
                const std::vector<std::string_view>& invalid) {
  check(kGbnf, text, valid, invalid);
  check(kXGrammar, text, valid, invalid);
}

std::string fault(EbnfDialect dialect, std::string_view text) {
  const auto grammar = compile(dialect, text);
  return grammar.has_value() ? "none" : grammar.error().message;
}

TEST(EbnfGrammar, TakesLiteralsClassesAndRepetitions) {
  check_both(R"(root ::= "ab" [c-e]+ [^a-z]? ("x" | "yz"){2,3})", {"abcxx", "abce1yzx", "abdxyzx"}, {"ab", "abcx", "abcxxxx", "abfxx"});
  check_both(R"(root ::= "a"* "b"{2} [0-9]{1,})", {"bb1", "aabb22"}, {"b1", "bbb1", "bb"});
  check_both("root ::= [^\\n]+ \"\\n\" # to the end of the line\n\n# nothing\n", {"a\n", "日本\n"}, {"\n", "a", "a\nb\n"});
  check_both(R"(root ::= "\x41\u00e9\U0001F600" [\x30-\x32])", {"Aé😀0", "Aé😀2"}, {"Aé😀3", "A"});
  check_both(R"(root ::= [a\-z] [\]x] [-+])", {"a]-", "-x+", "z]+"}, {"b]-", "ay-", "a]*"});
  check_both("root ::= \"a\" |\n  \"b\" |\n  (\n \"c\" # here\n \"d\"\n )", {"a", "b", "cd"}, {"c", "", "ab"});
  check_both("root ::= \"\" | \"x\"", {"", "x"}, {"xx"});
  check_both("root ::= [a-]", {"a", "-"}, {"b"});
}

TEST(EbnfGrammar, TakesRulesThatCallThemselves) {
  check_both("root ::= \"(\" root \")\" | \"x\"", {"x", "((x))"}, {"((x)", "()"});
  check_both("root ::= root \"a\" | \"a\"", {"a", "aaaa"}, {"", "ab"});
  check_both("root ::= e\ne ::= e \"+\" t | t\nt ::= t \"*\" f | f\nf ::= \"(\" e \")\" | [0-9]", {"1+2*3", "(1+2)*3"}, {"1+", "(1", "12"});
  check_both("root ::= a b\na ::= b a | \"x\"\nb ::= a b | \"\"", {"x", "xx", "xxx"}, {"", "xy"});
  check_both("root ::= x root | \"\"\nx ::= \"\" | \"a\" x", {"", "aa"}, {"b"});
  // Indirect left recursion behind a rule that may be empty.
  check_both("root ::= n root \"z\" | \"a\"\nn ::= \"n\" | \"\"", {"a", "azz", "nazz", "nnaz" "z"}, {"na", "nnaz"});
}

TEST(EbnfGrammar, CountsOnlyRoundsThatAreNotEmpty) {
  check_both("root ::= x{2,3}\nx ::= \"a\" x \"b\" | \"\"", {"", "ab", "aabb", "abab", "ababab", "abaabb"}, {"abababab", "a", "ba"});
  check_both("root ::= (x y){2}\nx ::= \"a\" x \"b\" | \"\"\ny ::= \"c\" y \"d\" | \"\"", {"", "ab", "abcdabcd", "cdcd"}, {"abcdabcdab", "ababab"});
  check_both("root ::= \"<\" x* \">\"\nx ::= \"a\" x | \"\"", {"<>", "<aaa>"}, {"<b>", "<"});
  check_both("root ::= (\"a\"*)*", {"", "aaa"}, {"b"});
  check_both("root ::= e{3}\ne ::= \"\" | f\nf ::= e", {""}, {"a"});
}

TEST(EbnfGrammar, DialectsDifferWhereTheirOriginalsDo) {
  check(kGbnf, R"(root ::= "\x41BC" .)", {"ABCé", "ABC\n"}, {"ABC"});
  check(kXGrammar, R"(root ::= "\x41BC")", {"\xE4\x86\xBC"}, {"ABC"});
  check(kGbnf, "root ::= a.b\na ::= \"1\"\nb ::= \"2\"", {"1x2"}, {"12"});
  check(kXGrammar, "root ::= a.b\na.b ::= \"1\"", {"1"}, {"12"});
  check(kGbnf, "root ::= 1st\n1st ::= \"1\"", {"1"}, {"2"});
  check(kXGrammar, "root ::= \"a\"\n  \"b\"\n\n  x\nx ::= \"c\"", {"abc"}, {"a", "ab"});
  EXPECT_NE(fault(kGbnf, "root ::= \"a\"\n  \"b\"").find("line 2, column 3"), std::string::npos);
  check(kGbnf, "root ::= \"a\n\"", {"a\n"}, {"a"});
  EXPECT_NE(fault(kXGrammar, "root ::= \"a\n\"").find("a line ends inside of a literal"), std::string::npos);
  check(kGbnf, "root ::= \"a\"?*", {"", "aa"}, {"b"});
  EXPECT_NE(fault(kXGrammar, "root ::= \"a\"?*").find("a repetition of a repetition"), std::string::npos);
  check(kXGrammar, R"(root ::= [^] "\e\/\'\0" [\^\$\.])", {std::string_view("x\x1B/'\0^", 6)}, {"x"});
  check(kXGrammar, "root ::= \"a\" (= \"b\")\n", {"a"}, {"ab"});
  check(kXGrammar, "root ::= x{2, -1}\nx[capture=\"n\"] ::= \"a\"", {"aa", "aaa"}, {"a"});
  check(kXGrammar, "root ::= () | \"a\"", {"", "a"}, {"b"});
}

TEST(EbnfGrammar, MacrosOfXGrammar) {
  check(kXGrammar, R"(root ::= "n=" Regex("\\d+(\\.\\d+)?") ";")", {"n=1;", "n=1.25;"}, {"n=;", "n=1."});
  check(kXGrammar, "root ::= TagDispatch((\"<f>\", f), loop_after_dispatch=true, excludes=(\"!\"))\nf ::= [0-9]+ \"</f>\"",
        {"", "text", "a <f>12</f> b", "<f>1</f><f>2</f>", "<f", "<<f>1</f>"},
        {"<f>x</f>", "a!", "<f>1", "<f>", "<f>1</f>!"});
  check(kXGrammar, "root ::= TagDispatch((\"aa\", x), loop_after_dispatch=false)\nx ::= \"b\"", {"aab", "caab", "c", ""}, {"aaab", "aabc", "aa"});
  check(kXGrammar, "root ::= \"[\" d{1,2} \"]\"\nd ::= TagDispatch((\"a\", x), excludes=(\"]\",))\nx ::= \"b\"", {"[]", "[ab]", "[xabab]"}, {"[a]"});
  check(kXGrammar, "root ::= Token(65, 66) \"x\"", {"Ax", "Bx"}, {"Cx", "x"});
}

TEST(EbnfGrammar, TokensAreTakenByTheirId) {
  check(kGbnf, "root ::= \"a\" <[65]> <tok>", {"aA\x07"}, {"aB\x07", "aA"});
  check(kGbnf, "root ::= <tok> !<tok>* <tok>", {"\x07\x07", "\x07" "abc\x07", "\x07\xFF\x07"}, {"\x07\x07\x07", "\x07\x01\x07", "\x07" "a"});
  check(kXGrammar, "root ::= ExcludeToken(65, 66){2}", {"CD", "xy"}, {"AC", "CB", "C", "CDE"});
  EXPECT_EQ(fault(kGbnf, "root ::= <other>"), "grammar, line 1, column 10: '<other>' is not one token of the vocabulary");
  EXPECT_EQ(fault(kGbnf, "root ::= <[256]>"), "grammar, line 1, column 12: the token 256 is not in the vocabulary of 256 tokens");
}

TEST(EbnfGrammar, FaultsAreNamedByTheirPlace) {
  for (const auto& [text, wanted] : std::map<std::string_view, std::string_view>{
           {"root ::= a\n", "grammar, line 1, column 10: there is no rule 'a'"},
           {"a ::= \"x\"", "grammar: there is no rule 'root', where it begins"},
           {"root ::= \"x", "grammar, line 1, column 10: a literal has no end"},
           {"root ::= \"é\" [a", "grammar, line 1, column 14: a class has no end"},
           {"root ::= (\"x\"", "grammar, line 1, column 10: a group has no end"},
           {"root ::= \"x\")", "grammar, line 1, column 13: here the rule's end is expected"},
           {"root ::= \"x\"\n\nroot ::= \"y\"", "grammar, line 3, column 1: the rule 'root' is there already, in line 1"},
           {"root ::= [z-a]", "grammar, line 1, column 11: a range has its ends turned round"},
           {"root ::= []", "grammar, line 1, column 10: a class without characters"},
           {"root ::= \"x\"{3,2}", "grammar, line 1, column 13: a repetition has its limits turned round"},
           {"root ::= \"x\"{,2}", "grammar, line 1, column 14: here a number is expected"},
           {"root ::= \"x\"{1000000}", "grammar, line 1, column 14: a repetition of more than 100000"},
           {"root ::= *", "grammar, line 1, column 10: there is nothing to repeat"},
           {"root ::= \"\\q\"", "grammar, line 1, column 11: the escape '\\q' is not known"},
           {"root ::= \"\\ud800\"", "grammar, line 1, column 11: this escape is a surrogate, which is no character"},
           {"root ::= \"\\u12\"", "grammar, line 1, column 11: this escape needs 4 hexadecimal digits"},
           {"root \"x\" ::=", "grammar, line 1, column 6: behind the name 'root' ::= is expected"},
           {"start: \"x\"", "Lark's notation (name: ...) is not supported"},
           {"root ::= root", "the guide has no text: nothing satisfies it"},
           {"root ::= \"a\" root", "the guide has no text: nothing satisfies it"},
           {"\xFF ::=", "grammar: the text is not UTF-8"}}) {
    EXPECT_NE(fault(kGbnf, text).find(wanted), std::string::npos) << text << ": " << fault(kGbnf, text);
  }
  EXPECT_NE(fault(kXGrammar, "root ::= \"x\" a ::= \"y\"").find("a rule's name has to be the first of its line"), std::string::npos);
  EXPECT_NE(fault(kXGrammar, "root[max_tokens=5] ::= \"x\"").find("the rule option 'max_tokens' is not supported"), std::string::npos);
}

// Each is a working guide or an error within 50 ms of processor time, until it has taken what may be taken of `text` and
// said what may follow.
void expect_quick(const std::vector<std::string>& hostile, std::string_view text_to_take) {
  for (const EbnfDialect dialect : {kGbnf, kXGrammar}) {
    for (const std::string& text : hostile) {
      double ms = 1e9;  // the least of three
      for (int round = 0; round < 3; ++round) {
        const std::clock_t begin = std::clock();
        if (const auto grammar = compile(dialect, text)) {
          GrammarMatcher matcher(*grammar);
          for (const char byte : text_to_take) matcher.accept(byte);
          TokenMask mask(256);
          matcher.fill(mask);
        }
        ms = std::min(ms, 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
      }
      EXPECT_LT(ms, time_bar_ms(50.0)) << text.substr(0, 60);
      ::testing::Test::RecordProperty("ms", std::to_string(ms));
      if (std::getenv("KVASIR_SHOW_TIMES") != nullptr) std::printf("%7.1f ms: %s\n", ms, text.substr(0, 30).c_str());
    }
  }
}

// Sixty rules, each of which is the next one twice; the last may be empty. So there are 2^60 ways to be empty.
std::string doubled_nullable_rules(std::string_view last, bool is_each_optional) {
  std::string text = "root ::= \"<\" r0 \">\"\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    const std::string twice = next + " " + next;
    text += "r" + std::to_string(i) + " ::= " + (is_each_optional ? "(" + twice + ")?" : twice) + "\n";
  }
  return text + "r60 ::= " + std::string(last) + "\n";
}

TEST(AdversarialEbnf, SixtyDoubledNullableRulesTakeNoLong) {
  expect_quick({doubled_nullable_rules("\"a\"?", false), doubled_nullable_rules("\"a\"?", true),
                doubled_nullable_rules("\"\" | \"(\" r0 \")\"", false), doubled_nullable_rules("\"\" | \"(\" r0 \")\"", true),
                doubled_nullable_rules("[a-z]* | r0 \"x\"", true)},
               "<");
  // Behind some bytes rules end that began at each of them. The last calls lead round all sixty.
  for (const std::string_view last : {"[a-z]* | r0 \"x\"", "[a-z]* | \"x\" r0", "\"a\"* | \"(\" r0"}) {
    expect_quick({doubled_nullable_rules(last, false), doubled_nullable_rules(last, true)}, "<aaaxaaxa");
  }
  check_both(doubled_nullable_rules("\"a\"?", true), {"<>", "<aaa>"}, {"", "<b>", "<a", "a>"});
  check_both(doubled_nullable_rules("\"a\"? | \"x\" r0", true), {"<>", "<xaa>", "<axxa>"}, {"<b>", "<x", "xa>"});
}

TEST(AdversarialEbnf, TakesNoLong) {
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5'000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  std::string ring = chain + "r5000 ::= \"(\" r0 \")\" | \"x\"\n";
  std::string empty_ring = chain + "r5000 ::= r0 | \"\" | \"x\"\n";
  chain += "r5000 ::= \"x\"\n";
  std::string optionals = "root ::= (";
  for (int i = 0; i < 20'000; ++i) optionals += "\"a\"? ";
  optionals += "){1,9} r\nr ::= \"(\" root \")\" | \"\"";
  const std::vector<std::string> hostile = {
      "root ::= " + std::string(60'000, '(') + "\"a\"" + std::string(60'000, ')'),
      "root ::= (\"a\"*)*",
      "root ::= ((((\"a\"*)*)+)*){0,99999}",
      chain,
      ring,
      empty_ring,
      optionals,
      "root ::= root root | \"a\"",
      "root ::= root",
      "root ::= \"a\"{1000000}",
      "root ::= \"a\"{100000}",
      "root ::= (\"a\"{1,1000}){1,1000}",
      "root ::= ((x{1,1000}){1,1000}){1,1000}\nx ::= \"a\" | \"(\" root \")\"",
      "root ::= (\"a\"|\"a\")* \"b\"",
      "root ::= (\"x\"+ \"x\"+)+ \"y\"",
      "root ::= \"" + std::string(200'000, 'a') + "\"",
      "root ::= \"a\"" + std::string(200'000, '*'),
      "root ::= a[" + std::string(100'000, '['),
      std::string(100'000, 'a') + " ::= \"x\"",
      "root ::= [" + std::string(200'000, 'a') + "]",
  };
  expect_quick(hostile, "axaxaxax");
}

}  // namespace
}  // namespace kvasir::grammar::ebnf_grammar_test
