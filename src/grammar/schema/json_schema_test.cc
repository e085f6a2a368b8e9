#include "grammar/schema/json_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compile/compiled_grammar.h"
#include "grammar/match/matcher.h"

namespace kvasir::grammar::json_schema_test {
namespace {

// A token for each byte.
std::shared_ptr<const Vocabulary> byte_vocabulary() {
  static const auto vocabulary = [] {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    const std::vector<std::string_view> views(tokens.begin(), tokens.end());
    return std::make_shared<const Vocabulary>(views);
  }();
  return vocabulary;
}

Result<std::shared_ptr<const CompiledGrammar>> compile(std::string_view schema) {
  auto store = std::make_unique<TermStore>();
  KVASIR_TRY(SchemaGrammar made, grammar_from_schema(*store, schema));
  return CompiledGrammar::create(std::move(store), std::move(made.grammar), byte_vocabulary());
}

bool accepts(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  for (const char byte : text) {
    if (!matcher.accept(static_cast<TokenId>(static_cast<unsigned char>(byte)))) return false;
  }
  return matcher.is_accepting();
}

struct SchemaCase {
  std::string_view schema;
  std::vector<std::string_view> valid;
  std::vector<std::string_view> invalid;
};

void check(const SchemaCase& one) {
  const auto grammar = compile(one.schema);
  ASSERT_TRUE(grammar.has_value()) << one.schema << ": " << grammar.error().message;
  for (const std::string_view text : one.valid) EXPECT_TRUE(accepts(*grammar, text)) << one.schema << " " << text;
  for (const std::string_view text : one.invalid) EXPECT_FALSE(accepts(*grammar, text)) << one.schema << " " << text;
}

TEST(JsonSchema, TypesAndValues) {
  check({"true", {"1", "null", "{\"a\":[true]}", "\"x\""}, {"", "1 ", "nul"}});
  check({R"({"type":"integer"})", {"0", "-12", "123456"}, {"1.0", "-0", "1e3", "\"1\"", "01"}});
  check({R"({"type":["string","null"]})", {"\"a\"", "null"}, {"1", "[]"}});
  check({R"({"enum":["a",1,null,{"x":[1,"b"]}]})", {"\"a\"", "1", "1.0", "null", R"({"x":[1,"b"]})", R"({"x": [1, "b"]})"},
         {"\"b\"", "2", R"({"x":[1]})", R"({"x":[1,"b"],"y":1})", "{}"}});
  check({R"({"const":"é\"\n"})", {R"("é\"\n")"}, {R"("\u00e9\"\n")", R"("e")"}});
}

TEST(JsonSchema, Numbers) {
  check({R"({"type":"integer","minimum":-5,"maximum":12})",
         {"-5", "-1", "0", "9", "10", "12"}, {"-6", "13", "100", "-10", "5.5", "-0"}});
  check({R"({"type":"number","exclusiveMinimum":0,"maximum":1})", {"0.5", "1", "1.0", "0.001"}, {"0", "0.0", "1.01", "-0.5", "2"}});
  check({R"({"minimum":1.5})", {"1.5", "1.51", "2", "10", "\"x\""}, {"1.49", "1", "0", "-3"}});
  check({R"({"type":"integer","multipleOf":7})", {"0", "7", "14", "-21", "700"}, {"1", "13", "-20"}});
  check({R"({"type":"number","multipleOf":0.01})", {"0.07", "1", "1.2", "3.140"}, {"0.001", "1.005"}});
  check({R"({"type":"number","not":{"type":"integer"}})", {"1.5", "0.1"}, {"1", "2.0", "1.000"}});
  for (int least = -23; least < 25; least += 7) {
    for (int greatest = least; greatest < 130; greatest += 17) {
      const auto grammar = compile("{\"type\":\"integer\",\"minimum\":" + std::to_string(least) +
                                   ",\"maximum\":" + std::to_string(greatest) + "}");
      ASSERT_TRUE(grammar.has_value());
      for (int value = -150; value < 150; ++value) {
        EXPECT_EQ(accepts(*grammar, std::to_string(value)), value >= least && value <= greatest)
            << value << " in [" << least << ", " << greatest << "]";
      }
    }
  }
}

TEST(JsonSchema, Strings) {
  check({R"({"type":"string","minLength":2,"maxLength":3})", {R"("ab")", R"("éß日")", R"("\u0041b")"}, {R"("a")", R"("abcd")"}});
  check({R"({"type":"string","pattern":"b+"})", {R"("abc")", R"("b")"}, {R"("ac")", R"("")"}});
  check({R"({"type":"string","pattern":"^[a-z]{2}$","minLength":1})", {R"("ab")"}, {R"("abc")", R"("a")"}});
  check({R"({"pattern":"^(?!no).*s$"})", {R"("yes")", R"("s")", "1"}, {R"("nos")", R"("yesx")"}});
  check({R"({"type":"string","format":"date"})", {R"("2024-02-29")", R"("2023-12-31")"}, {R"("2023-02-29")", R"("2023-13-01")"}});
  check({R"({"type":"string","format":"ipv6"})", {R"("::1")", R"("fe80::1:2")", R"("1:2:3:4:5:6:7:8")"}, {R"(":::")", R"("1:2:3")"}});
  check({R"({"type":"string","format":"made-up"})", {R"("x")"}, {}});
}

TEST(JsonSchema, Objects) {
  check({R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false})",
         {R"({"a":1})", R"({"a": 1, "b": "x"})", "{\n  \"a\": 1\n}"}, {"{}", R"({"b":"x"})", R"({"a":1,"c":2})", R"({"a":"x"})", R"({"a":1,})"}});
  check({R"({"properties":{"a":{"type":"integer"}}})", {"{}", R"({"b":2})", R"({"a":1,"b":[]})", "3"}, {R"({"a":"x"})", R"({"b":1,"a":"x"})"}});
  check({R"({"type":"object","required":["x"]})", {R"({"x":1})", R"({"x":null,"y":2})"}, {"{}", R"({"y":1})"}});
  check({R"({"type":"object","patternProperties":{"^s_":{"type":"string"}},"additionalProperties":{"type":"integer"}})",
         {R"({"s_a":"x","b":1})", "{}"}, {R"({"s_a":1})", R"({"b":"x"})"}});
  check({R"({"type":"object","minProperties":2,"maxProperties":3,"properties":{"a":true}})",
         {R"({"a":1,"b":2})", R"({"x":1,"y":2,"z":3})"}, {R"({"a":1})", R"({"a":1,"b":2,"c":3,"d":4})", "{}"}});
  check({R"({"type":"object","propertyNames":{"maxLength":2}})", {R"({"ab":1})"}, {R"({"abc":1})"}});
  check({R"({"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]},"additionalProperties":false})",
         {"{}", R"({"b":1})", R"({"a":1,"b":2})"}, {R"({"a":1})"}});
}

TEST(JsonSchema, Arrays) {
  check({R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})", {"[1]", "[1, 2,3]"}, {"[]", "[1,2,3,4]", "[\"x\"]"}});
  check({R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false})", {"[]", "[1]", "[1,\"x\"]"}, {"[\"x\"]", "[1,\"x\",2]"}});
  check({R"({"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"string"}})", {"[1,\"a\",\"b\"]"}, {"[1,2]"}});
  check({R"({"type":"array","items":{"type":"integer"},"contains":{"const":5}})", {"[5]", "[1,5,2]"}, {"[]", "[1,2]"}});
  check({R"({"type":"array","contains":{"type":"string"},"minContains":1,"maxContains":2,"maxItems":4})", {"[1,\"a\"]", "[\"a\",\"b\",3]"}, {"[1]", "[\"a\",\"b\",\"c\"]"}});
}

TEST(JsonSchema, Applicators) {
  check({R"({"allOf":[{"type":"integer"},{"minimum":3}],"maximum":5})", {"3", "5"}, {"2", "6", "\"x\""}});
  check({R"({"anyOf":[{"type":"string"},{"type":"object","properties":{"a":{"type":"null"}}}],"minLength":2})", {R"("ab")", R"({"a":null})"}, {R"("a")", "1"}});
  check({R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5"}, {"3"}});
  check({R"({"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"},"v":{"type":"integer"}},"required":["k"]}]})",
         {R"({"k":"a","v":"x"})", R"({"k":"b","v":1})"}, {R"({"k":"b","v":"x"})", R"({"k":"c"})"}});
  check({R"({"not":{"type":["string","object"]}})", {"1", "[]"}, {R"("x")", "{}"}});
  check({R"({"if":{"properties":{"t":{"const":"n"}},"required":["t"]},"then":{"required":["n"]},"else":{"required":["s"]},"properties":{"t":{},"n":{},"s":{}}})",
         {R"({"t":"n","n":1})", R"({"t":"x","s":1})", R"({"s":1})"}, {R"({"t":"n"})", R"({"t":"n","s":1})", "{}"}});
  check({R"({"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/node"}},"required":["v"],"additionalProperties":false}}})",
         {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"}, {R"({"v":1,"next":{}})", R"({"next":{"v":1}})"}});
  check({R"({"allOf":[{"properties":{"a":{}}}],"properties":{"b":{}},"unevaluatedProperties":false})", {R"({"b":1,"a":2})", "{}"}, {R"({"c":1})"}});
}

TEST(JsonSchema, ComplementsOfEveryKeyword) {
  check({R"({"not":{"oneOf":[{"type":"integer"},{"minimum":2}]}})", {"1.5", "3", "-0.5"}, {"1", "2.5", "\"x\""}});
  check({R"({"type":"array","not":{"prefixItems":[true],"items":{"type":"null"}}})", {"[1,2]", "[1,null,2]"}, {"[]", "[1]", "[1,null]"}});
  check({R"({"type":"object","not":{"dependentRequired":{"a":["b"]}},"properties":{"a":{},"b":{}}})", {R"({"a":1})"}, {"{}", R"({"a":1,"b":2})"}});
  check({R"({"type":"string","not":{"format":"date"}})", {R"("x")"}, {R"("2024-02-29")", R"("20240229")"}});
  check({R"({"type":"object","not":{"additionalProperties":{"type":"integer"},"properties":{"a":{}}}})",
         {R"({"a":1,"b":"x"})", R"({"b":1,"c":null})"}, {"{}", R"({"a":"x"})", R"({"b":1})"}});
  check({R"({"oneOf":[{"type":"string","format":"email"},{"type":"string","format":"uri"}]})", {R"("a@b.cd")", R"("http://a.b/")"}, {R"("mailto:a@b.cd")"}});
  check({R"({"type":"object","not":{"propertyNames":{"maxLength":1}}})", {R"({"ab":1})", R"({"a":1,"bc":2})"}, {"{}", R"({"a":1})"}});
}

TEST(JsonSchema, MembersThatHaveToBeThere) {
  check({R"({"type":"object","properties":{"a":{}},"not":{"patternProperties":{"^a":{"type":"integer"}}}})",
         {R"({"a":"x"})", R"({"a":1,"ab":null})", R"({"ab":"x"})"}, {"{}", R"({"a":1})", R"({"b":"x"})"}});
  check({R"({"type":"object","maxProperties":2,"not":{"additionalProperties":{"type":"integer"}}})",
         {R"({"a":"x"})", R"({"a":1,"b":"x"})"}, {"{}", R"({"a":1})", R"({"a":"x","b":1,"c":1})"}});
  check({R"({"type":"object","allOf":[{"not":{"patternProperties":{"^a":{"type":"integer"}}}},{"not":{"patternProperties":{"z$":{"type":"null"}}}}]})",
         {R"({"az":"x"})", R"({"a":"x","z":1})"}, {R"({"a":"x"})", R"({"z":1})", R"({"az":1})"}});
}

TEST(JsonSchema, SeveralContains) {
  check({R"({"type":"array","allOf":[{"contains":{"const":1}},{"contains":{"const":2}}]})", {"[1,2]", "[2,0,1]"}, {"[1]", "[2,2]", "[]"}});
  check({R"({"type":"array","allOf":[{"contains":{"type":"string"},"maxContains":1},{"contains":{"minimum":5},"minContains":2}]})",
         {"[5,\"a\",6]", "[7,8,1,\"x\"]", "[5,\"a\"]"}, {"[5,6]", "[5,\"a\",6,\"b\"]"}});
}

TEST(JsonSchema, UniqueItemsOfFewValues) {
  check({R"({"type":"array","items":{"enum":["a","b",1,null]},"uniqueItems":true,"minItems":1})",
         {"[\"a\"]", "[null,1,\"b\",\"a\"]", "[\"b\",1]"}, {"[]", "[\"a\",\"a\"]", "[1,1.0]", "[\"a\",\"c\"]"}});
}

// The same text is a key, a value and an item that may not come twice.
TEST(JsonSchema, TextsAreRecordedWhereverElseTheyStand) {
  check({R"({"type":["array","object"],"uniqueItems":true,"items":{"type":"string"}})",
         {R"(["a","b"])", R"({"a":1,"b":1})", R"({"$schema":1,"a":1})"},
         {R"(["a","a"])", R"({"a":1,"a":2})", R"({"$schema":1,"$schema":2})"}});
  check({R"({"type":"object","properties":{"v":{"type":["null","string"]},"l":{"type":"array","items":{"type":["null","string"]},"uniqueItems":true}},"additionalProperties":false})",
         {R"({"v":null,"l":[null,"a"]})", R"({"v":"a","l":["a",null]})"}, {R"({"v":null,"l":[null,null]})", R"({"v":"a","l":["a","a"]})"}});
}

TEST(JsonSchema, DocumentsMayBeginWithTheirSchema) {
  check({R"({"properties":{"a":{"type":"object","properties":{"b":{}}}}})", {R"({"$schema":"x","a":{"b":1}})", R"({"a":{},"c":1,"$schema":"x"})"},
         {R"({"a":{"$schema":"x","b":1}})", R"({"c":1,"a":{}})"}});
  check({R"({"properties":{"a":{}},"additionalProperties":{"type":"integer"}})", {R"({"$schema":1,"a":2})"}, {R"({"$schema":"x"})"}});
}

TEST(JsonSchema, MembersComeInTheOrderOfTheText) {
  // Several schemas hold at once; their order may not depend on where they lie in memory.
  for (int i = 0; i < 20; ++i) {
    const std::vector<std::string> elsewhere(static_cast<std::size_t>(i), std::string(500, 'x'));
    check({R"({"type":"object","if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":{}},"required":["b"]},"else":false,"additionalProperties":{}})",
           {R"({"a":1,"b":2})"}, {R"({"b":2,"a":1})"}});
    check({R"({"properties":{"o":{"properties":{"p":{}}}},"allOf":[{"properties":{"o":{"properties":{"q":{}}}}}]})",
           {R"({"o":{"p":1,"q":2}})"}, {R"({"o":{"q":2,"p":1}})"}});
  }
}

// Two decimals of each side against exact arithmetic in hundredths.
TEST(JsonSchema, RangesOfDecimals) {
  const auto text_of = [](int hundredths) {
    const std::string digits = std::to_string(std::abs(hundredths) % 100 + 100).substr(1);
    return (hundredths < 0 ? "-" : "") + std::to_string(std::abs(hundredths) / 100) + "." + digits;
  };
  std::uint32_t random = 7;
  const auto draw = [&] { return static_cast<int>((random = random * 1664525 + 1013904223) >> 8); };
  for (int i = 0; i < 60; ++i) {
    const int scale = i % 3 == 0 ? 100 : i % 3 == 1 ? 3000 : 120'000;
    const int least = draw() % (2 * scale) - scale;
    const int greatest = least + draw() % scale;
    const bool is_open = i % 2 == 0;
    const auto grammar = compile(fmt::format(R"({{"type":"number","{}":{},"maximum":{}}})",
                                             is_open ? "exclusiveMinimum" : "minimum", text_of(least), text_of(greatest)));
    ASSERT_TRUE(grammar.has_value() || (is_open && least == greatest));
    if (!grammar) continue;
    for (const int around : {least, greatest, 0, -least, 10 * least, greatest / 10, draw() % scale}) {
      for (int value = around - 12; value <= around + 12; ++value) {
        const bool is_in = (is_open ? value > least : value >= least) && value <= greatest;
        EXPECT_EQ(accepts(*grammar, text_of(value)), is_in)
            << text_of(value) << " in " << text_of(least) << " " << is_open << ", " << text_of(greatest);
        EXPECT_EQ(accepts(*grammar, text_of(value) + "0"), is_in) << value;
      }
    }
  }
}

TEST(JsonSchema, UnevaluatedAsksForWhatHolds) {
  check({R"({"not":{"not":{"properties":{"a":{}}}},"unevaluatedProperties":false})", {"{}"}, {R"({"a":1})"}});
  check({R"({"enum":[{"a":1},{}],"unevaluatedProperties":false})", {"{}"}, {R"({"a":1})"}});
  check({R"({"prefixItems":[true],"unevaluatedItems":{"type":"null"}})", {"[1]", "[1,null]"}, {"[1,2]"}});
}

TEST(JsonSchema, AnchorsInRepetitions) {
  check({R"({"type":"string","pattern":"^(a|b$)+$"})", {R"("a")", R"("aab")", R"("b")"}, {R"("")", R"("ba")"}});
  check({R"({"type":"string","pattern":"(^x|,y)*,z$"})", {R"("x,y,z")", R"(",z")", R"("q,y,z")"}, {R"("x")", R"("xz")"}});
}

TEST(JsonSchema, OptionsCloseObjectsAndSetBlanks) {
  const auto with = [](std::string_view schema, const SchemaOptions& options) {
    auto store = std::make_unique<TermStore>();
    auto made = grammar_from_schema(*store, schema, options);
    return *CompiledGrammar::create(std::move(store), std::move(made->grammar), byte_vocabulary());
  };
  const auto closed = with(R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{"type":"object"}}}]})", {.closes_objects = true});
  EXPECT_TRUE(accepts(closed, R"({"a":{"x":1},"b":{"y":2}})"));
  EXPECT_FALSE(accepts(closed, R"({"c":1})"));
  const auto open = with(R"({"properties":{"a":{}},"additionalProperties":{}})", {.closes_objects = true});
  EXPECT_TRUE(accepts(open, R"({"c":1})"));
  const auto single = with(R"({"type":"array","items":{"properties":{"a":{}}}})", {.blanks = JsonBlanks::kSingle});
  EXPECT_TRUE(accepts(single, R"([{"a": 1, "b": 2}, 3])"));
  EXPECT_FALSE(accepts(single, R"([{"a":1}])"));
  EXPECT_FALSE(accepts(single, R"([1,2])"));
}

TEST(JsonSchema, FaultsAreNamedByTheirPlace) {
  for (const auto& [schema, wanted] : std::map<std::string_view, std::string_view>{
           {R"({"properties":{"a":{"$ref":"#/$defs/b"}}})", "'/properties/a/$ref': '#/$defs/b' is not in this document"},
           {R"({"type":"strin"})", "'/type': 'strin' is no type"},
           {R"({"pattern":"(a"})", "'/pattern': pattern '(a', character 2: a group has no end"},
           {R"({"a":1,"a":2})", "/a: this key is there twice"},
           {R"({"$ref":"#"})", "'': the schema refers to itself and takes nothing on the way"},
           {R"({"type":"string","enum":[1]})", "the guide has no text: nothing satisfies it"},
           {R"({"$schema":"http://json-schema.org/draft-03/schema#","divisibleBy":3})",
            "'/$schema': drafts before 4 are not supported"},
           {R"({"$schema":"http://json-schema.org/draft-03/schema#","$ref":"#/a","a":{}})", "'/$schema': drafts before 4"}}) {
    const auto grammar = compile(schema);
    ASSERT_FALSE(grammar.has_value()) << schema;
    EXPECT_NE(grammar.error().message.find(wanted), std::string::npos) << grammar.error().message;
  }
}

TEST(JsonSchema, AKeywordThatTheGrammarCannotCountIsNamed) {
  for (const auto& [schema, wanted] : std::map<std::string_view, std::string_view>{
           {R"({"type":"integer","multipleOf":1000001})", "'/multipleOf': multipleOf 1000001 has more than"},
           {R"({"type":"number","multipleOf":0.00000000000000000001})", "'/multipleOf': multipleOf"},
           {R"({"properties":{"a":{"type":"array","minItems":2,"uniqueItems":true,"items":{"type":"array","minItems":1}}},"required":["a"]})",
            "'/properties/a/uniqueItems': uniqueItems is supported for"},
           {R"({"type":"array","contains":{"type":"null"},"minContains":300,"maxContains":400,"maxItems":500})",
            "'/contains': contains beside counts makes more than"}}) {
    const auto grammar = compile(schema);
    ASSERT_FALSE(grammar.has_value()) << schema;
    EXPECT_TRUE(grammar.error().message.starts_with(wanted)) << grammar.error().message;
  }
}

std::string object_of_optional_members(int num_members, int num_required) {
  std::string schema = R"({"properties":{)";
  std::string required;
  for (int i = 0; i < num_members; ++i) {
    schema += fmt::format(R"({}"m{}":{{"type":"null"}})", i == 0 ? "" : ",", i);
    if (i % (num_members / (num_required + 1)) == 1 && i > 1) required += fmt::format(R"({}"m{}")", required.empty() ? "" : ",", i);
  }
  return schema + R"(},"additionalProperties":false,"required":[)" + required + "]}";
}

TEST(JsonSchema, AThousandMembersInARowMayBeLeftOut) {
  EXPECT_TRUE(compile(object_of_optional_members(1000, 0)).has_value());
  const auto grammar = compile(object_of_optional_members(1001, 0));
  ASSERT_FALSE(grammar.has_value());
  EXPECT_EQ(grammar.error().message, "'/properties': more than 1000 members in a row may be left out");
  EXPECT_TRUE(compile(object_of_optional_members(1800, 1)).has_value()) << "one in the middle has to be there";
}

TEST(JsonSchema, APartThatNothingSatisfiesIsNamed) {
  for (const auto& [schema, place] : std::map<std::string_view, std::string_view>{
           {R"({"type":"object","required":["a","b"],"properties":{"a":{},"b":{"type":"integer","minimum":5,"maximum":4}}})",
            "/properties/b"},
           {R"({"type":"object","required":["a"],"properties":{"a":false}})", "/properties/a"},
           {R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/s"}},"$defs":{"s":{"enum":[]}}})", "/$defs/s"},
           {R"({"type":"array","minItems":1,"items":{"type":"string","minLength":3,"maxLength":2}})", "/items"},
           {R"({"type":"array","minItems":1,"prefixItems":[{"not":{}}]})", "/prefixItems/0"},
           {R"({"allOf":[{"type":"string"},{"allOf":[{},false]}]})", "/allOf/1/allOf/1"},
           {R"({"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}})", "/properties/a"}}) {
    const auto grammar = compile(schema);
    ASSERT_FALSE(grammar.has_value()) << schema;
    EXPECT_EQ(grammar.error().message, "'" + std::string(place) + "': nothing satisfies the schema") << schema;
  }
  const auto narrowed = compile(R"({"type":"array","contains":{"type":"null"},"unevaluatedItems":false})");
  ASSERT_FALSE(narrowed.has_value());
  EXPECT_EQ(narrowed.error().message,
            "'/unevaluatedItems': elements that contains finds have to fit as well, so nothing can be written");
  // No part is at fault alone.
  const auto grammar = compile(R"({"allOf":[{"type":"string"},{"type":"null"}]})");
  ASSERT_FALSE(grammar.has_value());
  EXPECT_EQ(grammar.error().message, "the guide has no text: nothing satisfies it");
}

TEST(JsonSchema, TellsWhatIsIgnored) {
  TermStore store;
  const auto made = grammar_from_schema(
      store, R"({"properties":{"a":{"format":"color"},"b":{"format":"date"},"c":{"required":true}}})");
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->ignored, (std::set<std::string>{"/properties/a/format", "/properties/c/required"}));
}

}  // namespace
}  // namespace kvasir::grammar::json_schema_test
