#include "grammar/tags/structural_tag.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/testing/byte_matcher.h"

namespace kvasir::grammar::structural_tag_test {
namespace {

Result<std::shared_ptr<const CompiledGrammar>> compile(std::string_view json) {
  const TokenNames names = {
      .find = [](std::string_view name) { return name == "<t>" ? std::optional<TokenId>(7) : std::nullopt; },
      .num_tokens = 256,
      .has_text = [](TokenId token) { return token != 1; }};
  return compile_for_bytes(
      [&](TermStore& store) { return grammar_from_structural_tag(store, json, {.schema = {}, .tokens = names}); });
}

void check(std::string_view json, const std::vector<std::string_view>& valid,
           const std::vector<std::string_view>& invalid) {
  const auto grammar = compile(json);
  ASSERT_TRUE(grammar.has_value()) << json << ": " << grammar.error().message;
  for (const std::string_view one : valid) EXPECT_TRUE(accepts_bytes(*grammar, one)) << json << " takes not: " << one;
  for (const std::string_view one : invalid) EXPECT_FALSE(accepts_bytes(*grammar, one)) << json << " takes: " << one;
}

// As the "format" of a structural tag.
void check_format(const std::string& format, const std::vector<std::string_view>& valid,
                  const std::vector<std::string_view>& invalid) {
  check(R"({"type":"structural_tag","format":)" + format + "}", valid, invalid);
}

TEST(StructuralTag, TakesEachFormat) {
  check_format(R"({"type":"const_string","value":"é!"})", {"é!"}, {"é", ""});
  check_format(R"({"type":"json_schema","json_schema":{"type":"integer","maximum":9,"minimum":0}})", {"7"}, {"12", "x"});
  check_format(R"({"type":"grammar","grammar":"root ::= \"a\" root \"b\" | \"\""})", {"", "aabb"}, {"aab"});
  check_format(R"({"type":"regex","pattern":"[A-Z]{3}-\\d+"})", {"ABC-12"}, {"AB-1", "xABC-1"});
  check_format(R"({"type":"any_text"})", {"", "anything\n"}, {"\xFF"});
  check_format(R"({"type":"any_text","excludes":["</a>"],"max_chars":4})", {"é</a", ""}, {"</a>", "12345"});
  check_format(R"({"type":"sequence","elements":[{"type":"const_string","value":"x="},{"type":"regex","pattern":"\\d"}]})", {"x=1"}, {"x=", "1"});
  check_format(R"({"type":"or","elements":[{"type":"const_string","value":"yes"},{"type":"const_string","value":"no"}]})", {"yes", "no"}, {"yesno"});
  check_format(R"({"type":"optional","content":{"type":"json_schema","json_schema":{"type":"null"}}})", {"", "null"}, {"nullnull"});
  check_format(R"({"type":"plus","content":{"type":"const_string","value":"ab"}})", {"ab", "abab"}, {"", "aba"});
  check_format(R"({"type":"star","content":{"type":"any_text","excludes":["x"]}})", {"", "ab"}, {"x"});
  check_format(R"({"type":"repeat","min":1,"max":2,"content":{"type":"json_schema","json_schema":{"enum":[true,[]]}}})", {"true", "[]true"}, {"", "truetruetrue"});
  check_format(R"({"type":"repeat","min":2,"max":-1,"content":{"type":"const_string","value":"a"}})", {"aa", "aaa"}, {"a"});
  check_format(R"({"type":"sequence","elements":[{"type":"token","token":"<t>"},{"type":"token","token":65}]})", {"\x07" "A"}, {"A"});
}

TEST(StructuralTag, FreeTextEndsWithItsTag) {
  check_format(R"({"type":"tag","begin":"<think>","content":{"type":"any_text"},"end":"</think>"})",
               {"<think></think>", "<think>a < b </thin</think>"}, {"<think>", "<think></think></think>", "<think>a"});
  check_format(R"({"type":"tag","begin":"[","content":{"type":"any_text"},"end":["aab","ab!"]})", {"[xaab", "[aaab", "[xab!"}, {"[xaab!", "[ab"});
  check_format(R"({"type":"tag","begin":"<a>","content":{"type":"sequence","elements":[{"type":"const_string","value":"q"},{"type":"any_text","excludes":["!"]}]},"end":"</a>"})",
               {"<a>q</a>", "<a>qxyz</a>"}, {"<a>q!</a>", "<a></a>", "<a>q</a></a>"});
  check_format(R"({"type":"tag","begin":{"type":"token","token":7},"content":{"type":"any_text"},"end":{"type":"token","token":8}})", {"\x07xy\x08"}, {"xy", "\x07xy"});
  check_format(R"({"type":"tag","begin":{"type":"token","token":7},"content":{"type":"any_tokens","exclude_tokens":[66]},"end":{"type":"token","token":8}})",
               {"\x07\x08", "\x07xy\xFF\x08"}, {"\x07" "B\x08", "\x07x\x08\x08", "\x07\x01\x08"});
  check_format(R"({"type":"sequence","elements":[{"type":"any_tokens","max_tokens":2},{"type":"exclude_token","exclude_tokens":["<t>"]}]})", {"a", "abc"}, {"", "abcd", "\x07"});
  check_format(R"({"type":"tag","begin":"<a>","content":{"type":"any_text"},"end":""})", {"<a>", "<a>x"}, {"x"});
}

constexpr std::string_view kTools =
    R"("triggers":["<f="],"tags":[{"begin":"<f=a>","content":{"type":"json_schema","json_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}},"end":"</f>"},{"type":"tag","begin":"<f=b>","content":{"type":"any_text"},"end":"</f>"}])";

TEST(StructuralTag, TriggersLeadToTheirTags) {
  const std::string tools(kTools);
  check_format(R"({"type":"triggered_tags",)" + tools + "}",
               {"", "no call", "x <f=a>{\"n\":1}</f> y <f=b>z</f>", "<f", "a < b"},
               {"<f=c></f>", "<f=a>{}</f>", "<f=a>{\"n\":1}", "<f="});
  check_format(R"({"type":"triggered_tags","at_least_one":true,)" + tools + "}", {"<f=b></f>", "<f=b></f> and <f=b>x</f>"}, {"", "x <f=b></f>"});
  check_format(R"({"type":"triggered_tags","stop_after_first":true,)" + tools + "}", {"x", "x<f=b></f>"}, {"<f=b></f>x"});
  check_format(R"({"type":"triggered_tags","at_least_one":true,"stop_after_first":true,)" + tools + "}", {"<f=b></f>"}, {"", "<f=b></f><f=b></f>"});
  check_format(R"({"type":"tag","begin":"<r>","content":{"type":"triggered_tags",)" + tools + R"(},"end":"</r>"})",
               {"<r></r>", "<r>x<f=b></r></f>y</r>"}, {"<r>", "<r></r></r>"});
  check_format(R"({"type":"triggered_tags","excludes":["!"],)" + tools + "}", {"a", "<f=b>!</f>"}, {"!"});
}

TEST(StructuralTag, TagsMayBeListed) {
  const std::string tags = R"("tags":[{"type":"tag","begin":"<","content":{"type":"regex","pattern":"[ab]"},"end":">"}],"separator":", ")";
  check_format(R"({"type":"tags_with_separator",)" + tags + "}", {"", "<a>", "<a>, <b>"}, {"<a>, ", "<a><b>"});
  check_format(R"({"type":"tags_with_separator","at_least_one":true,)" + tags + "}", {"<a>"}, {""});
  check_format(R"({"type":"tags_with_separator","stop_after_first":true,)" + tags + "}", {"", "<a>"}, {"<a>, <b>"});
  check_format(R"({"type":"dispatch","rules":[["#",{"type":"regex","pattern":"\\d"}]],"excludes":["!"]})", {"", "a#1b#2"}, {"#", "#x", "!"});
  check_format(R"({"type":"dispatch","loop":false,"rules":[["#",{"type":"regex","pattern":"\\d"}]]})", {"a", "a#1"}, {"a#1b"});
}

TEST(StructuralTag, TakesTheOlderForm) {
  check(R"({"type":"structural_tag","structures":[{"begin":"<f=a>","schema":{"type":"boolean"},"end":"</f>"}],"triggers":["<f="]})",
        {"", "x<f=a>true</f>y"}, {"<f=a>1</f>", "<f=b>"});
  check(R"({"type":"const_string","value":"x"})", {"x"}, {""});
}

TEST(StructuralTag, FaultsAreNamedByTheirPlace) {
  for (const auto& [format, wanted] : std::map<std::string_view, std::string_view>{
           {R"({"type":"sequence","elements":[{"type":"const_string"}]})", "'/format/elements/0': 'value' is missing"},
           {R"({"type":"poem"})", "'/format': the format 'poem' is not supported"},
           {R"({"type":"json_schema","json_schema":{"type":"strin"}})", "structural tag, '/format/json_schema/type': 'strin' is no type"},
           {R"({"type":"grammar","grammar":"root ::= x"})", "'/format/grammar': grammar, line 1, column 10: there is no rule 'x'"},
           {R"({"type":"regex","pattern":"("})", "'/format/pattern': pattern '(', character 1"},
           {R"({"type":"any_text","max_tokens":5})", "'/format/max_tokens': a limit of tokens is not supported"},
           {R"({"type":"triggered_tags","triggers":["<"],"tags":[{"begin":"x","content":{"type":"any_text"},"end":""}]})", "the tag 'x' begins with no trigger"},
           {R"({"type":"token","token":"<u>"})", "'/format/token': '<u>' is not one token of the vocabulary"},
           {R"({"type":"token","token":256})", "'/format/token': the token 256 is not in the vocabulary of 256 tokens"},
           {R"({"type":"repeat","min":3,"max":2,"content":{"type":"any_text"}})", "'/format/max': this is less than 'min'"},
           {"7", "'/format': this is no format object"}}) {
    const auto grammar = compile(R"({"type":"structural_tag","format":)" + std::string(format) + "}");
    ASSERT_FALSE(grammar.has_value()) << format;
    EXPECT_NE(grammar.error().message.find(wanted), std::string::npos) << grammar.error().message;
  }
}

}  // namespace
}  // namespace kvasir::grammar::structural_tag_test
