// Renders the cases of tests/cases/template and compares them with what Jinja2 under transformers gave
// (scripts/make_template_cases.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "jinja/template.h"

namespace kvasir::jinja::conformance_test {
namespace {

const std::filesystem::path kCases = std::filesystem::path(KVASIR_SOURCE_DIR) / "tests/cases/template";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Value parse_json(std::string_view json) {
  auto value = Value::from_json(json);
  EXPECT_TRUE(value) << value.error().message << ": " << json.substr(0, 200);
  return value ? *value : Value::none();
}

// 26 July 2024, 13:45:09, as in the script that made the expectations.
RenderOptions options_with_fixed_clock() {
  RenderOptions options;
  options.now = [] {
    std::tm now = {};
    now.tm_year = 124;
    now.tm_mon = 6;
    now.tm_mday = 26;
    now.tm_hour = 13;
    now.tm_min = 45;
    now.tm_sec = 9;
    now.tm_isdst = -1;
    std::mktime(&now);  // day of the week and of the year
    return now;
  };
  return options;
}

Result<std::string> render(std::string_view source, const Value& globals) {
  auto parsed = Template::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(globals, options_with_fixed_clock());
}

// `outcome` holds "expected", "raises" or "error".
void expect_outcome(const Result<std::string>& actual, const Dict& outcome, const std::string& what) {
  if (const Value* expected = outcome.find("expected")) {
    if (!actual) {
      ADD_FAILURE() << what << "\nfailed: " << actual.error().message
                    << "\nwanted: " << expected->as_string();
      return;
    }
    EXPECT_EQ(*actual, expected->as_string()) << what;
    return;
  }
  const bool raises = outcome.find("raises") != nullptr;
  const std::string message = outcome.find(raises ? "raises" : "error")->as_string();
  if (actual) {
    ADD_FAILURE() << what << "\nrendered: " << *actual << "\nbut should fail: " << message;
    return;
  }
  if (raises) {
    EXPECT_NE(actual.error().message.find(message), std::string::npos) << what << "\n"
                                                                       << actual.error().message;
    EXPECT_EQ(actual.error().kind, ErrorKind::kUsage) << what;
  }
  EXPECT_NE(actual.error().message.find("line "), std::string::npos) << what << "\n"
                                                                     << actual.error().message;
}

void check_micro_cases(const std::string& group) {
  const Value globals = parse_json(read_file(kCases / "micro/globals.json"));
  const Value foreign_globals = as_foreign(globals);
  std::istringstream lines(read_file(kCases / "micro" / (group + ".jsonl")));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Value test_case = parse_json(line);
    const std::string source = test_case.as_dict().find("template")->as_string();
    expect_outcome(render(source, globals), test_case.as_dict(), source);
    expect_outcome(render(source, foreign_globals), test_case.as_dict(), "foreign: " + source);
  }
  EXPECT_GE(count, 70u) << group;
}

TEST(TemplateConformance, ExpressionsMatchJinja) { check_micro_cases("expressions"); }
TEST(TemplateConformance, FiltersMatchJinja) { check_micro_cases("filters"); }
TEST(TemplateConformance, TestsMatchJinja) { check_micro_cases("tests"); }
TEST(TemplateConformance, MethodsMatchPython) { check_micro_cases("methods"); }
TEST(TemplateConformance, StatementsMatchJinja) { check_micro_cases("statements"); }
TEST(TemplateConformance, WhitespaceControlMatchesJinja) { check_micro_cases("whitespace"); }
TEST(TemplateConformance, WhatJinjaRefusesIsRefused) { check_micro_cases("errors"); }

// The variables of a conversation over those that transformers passes always.
Value family_globals(const Value& conversation) {
  std::vector<Value::Entry> entries = {
      {Value::string("tools"), Value::none()},
      {Value::string("documents"), Value::none()},
      {Value::string("add_generation_prompt"), Value::boolean(false)},
      {Value::string("bos_token"), Value::string("<s>")},
      {Value::string("eos_token"), Value::string("</s>")},
  };
  const auto& own = conversation.as_dict().entries();
  entries.insert(entries.end(), own.begin(), own.end());
  return Value::dict(std::move(entries));
}

TEST(TemplateConformance, TemplateFamiliesRenderEveryConversationAsTransformersDoes) {
  const Value conversations = parse_json(read_file(kCases / "families/conversations.json"));
  const Value families = parse_json(read_file(kCases / "families/expected.json"));
  for (const auto& [family, outcomes] : families.as_dict().entries()) {
    const std::string source = read_file(kCases / "families" / (family.as_string() + ".jinja"));
    for (const auto& [name, conversation] : conversations.as_dict().entries()) {
      const Value* outcome = outcomes.as_dict().find(name);
      ASSERT_NE(outcome, nullptr) << name.as_string() << ": run scripts/make_template_cases.py";
      for (const Value& globals : {family_globals(conversation), as_foreign(family_globals(conversation))}) {
        expect_outcome(render(source, globals), outcome->as_dict(),
                       family.as_string() + " / " + name.as_string());
      }
    }
  }
  EXPECT_GE(families.as_dict().entries().size(), 13u);
}

}  // namespace
}  // namespace kvasir::jinja::conformance_test
