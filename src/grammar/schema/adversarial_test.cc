// Schemas that are made to cost much: each is a guide, or is refused, within 50 ms of processor time.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "grammar/regex/term_store.h"
#include "grammar/schema/json_schema.h"
#include "grammar/testing/time_bar.h"

namespace kvasir::grammar::adversarial_schema_test {
namespace {

double thread_ms() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

std::string list_of(int count, const std::function<std::string(int)>& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + part(i);
  return text;
}

std::string number(int i) { return std::to_string(i); }

std::map<std::string, std::string> schemas() {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += R"({"items":)";
  const auto any_of = [](int i) {
    return R"({"anyOf":[)" + list_of(30, [&](int j) {
      return R"({"properties":{"k)" + number(i) + "_" + number(j) + R"(":{"type":"string"}},"required":["k)" + number(j) + R"("]})";
    }) + "]}";
  };
  return {
      {"10,000 levels", deep + "true" + std::string(10'000, '}')},
      {"$ref to itself", R"({"$ref":"#"})"},
      {"$refs in a ring", R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})"},
      {"allOf of 30 anyOfs of 30", R"({"allOf":[)" + list_of(30, any_of) + "]}"},
      {"oneOf of 1,000 that overlap", R"({"oneOf":[)" + list_of(1000, [](int i) {
         return R"({"properties":{"p)" + number(i) + R"(":{"type":"integer"}}})";
       }) + "]}"},
      {"100,000 values", R"({"enum":[)" + list_of(100'000, number) + "]}"},
      {"min above max", R"({"type":"integer","minimum":5,"maximum":1})"},
      {"a required key that is false", R"({"properties":{"a":false},"required":["a"],"type":"object"})"},
      {"50 patternProperties that overlap", R"({"patternProperties":{)" + list_of(50, [](int i) {
         return "\"" + std::string(static_cast<std::size_t>(i) % 7 + 1, 'a') + number(i) + R"(|x":{"minimum":)" + number(i) + "}";
       }) + "}}"},
      {"an unpaired surrogate", R"({"enum":["\ud800"]})"},
      {"NUL", R"({"const":"a\u0000b"})"},
      {"a key of 64 KiB", R"({"properties":{")" + std::string(64 << 10, 'k') + R"(":true}})"},
      {"a sparse divisor", R"({"multipleOf":0.00001,"minimum":0.5})"},
      {"long counters", R"({"type":"string","pattern":"^(a{1,1000}){1,1000}$","maxLength":100000})"},
  };
}

TEST(AdversarialSchemas, TakeNoLong) {
  for (const auto& [name, schema] : schemas()) {
    double ms = 1e9;  // the least of three
    Result<SchemaGrammar> made = make_error(ErrorKind::kInternal, "");
    for (int i = 0; i < 3; ++i) {
      const double begin_ms = thread_ms();
      TermStore store;
      made = grammar_from_schema(store, schema);
      ms = std::min(ms, thread_ms() - begin_ms);
    }
    EXPECT_LT(ms, time_bar_ms(50.0)) << name << ": " << (made ? "a guide" : made.error().message.substr(0, 200));
    const std::string message = made ? std::string() : made.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace kvasir::grammar::adversarial_schema_test
