#include "jinja/template.h"

#include <gtest/gtest.h>

#include <string>

namespace kvasir::jinja::template_test {
namespace {

Result<std::string> render(std::string_view source, const Value& globals = Value::dict({}),
                           const RenderOptions& options = {}) {
  auto parsed = Template::parse(source);
  if (!parsed) return std::unexpected(parsed.error());
  return parsed->render(globals, options);
}

Error error_of(std::string_view source, const RenderOptions& options = {}) {
  const auto text = render(source, Value::dict({}), options);
  EXPECT_FALSE(text) << *text;
  return text ? Error{} : text.error();
}

TEST(Template, RefusesSourcesThatAreNoText) {
  EXPECT_FALSE(Template::parse("\xff"));
  EXPECT_FALSE(Template::parse(std::string(Template::kMaxSourceBytes + 1, 'x')));
}

// Jinja 2 itself refuses it.
TEST(Template, WritesAGeneratorAsJson) {
  EXPECT_EQ(render("{{ [{'a': 1}, {'a': 'b'}] | map(attribute='a') | tojson }}"), "[1, \"b\"]");
}

TEST(Template, StopsAtTheStepLimit) {
  const RenderOptions options{.max_steps = 10'000};
  const Error error = error_of(
      "{% for i in range(1000) %}{% for j in range(1000) %}{{ i }}{% endfor %}{% endfor %}", options);
  EXPECT_EQ(error.kind, ErrorKind::kUnmet);
  EXPECT_NE(error.message.find("10000 steps"), std::string::npos) << error.message;
}

TEST(Template, StopsAtTheOutputLimit) {
  const RenderOptions options{.max_output_bytes = 1000};
  EXPECT_EQ(error_of("{{ 'x' * 1001 }}", options).kind, ErrorKind::kUnmet);
  EXPECT_EQ(error_of("{% set a %}{{ 'x' * 1001 }}{% endset %}", options).kind, ErrorKind::kUnmet);
  EXPECT_EQ(error_of("{{ 'x' * 600 }}{% filter upper %}{{ 'x' * 600 }}{% endfilter %}", options).kind,
            ErrorKind::kUnmet);
  EXPECT_TRUE(render("{{ 'x' * 1000 }}", Value::dict({}), options));
}

TEST(Template, StopsAtTheDepthLimit) {
  EXPECT_EQ(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").kind, ErrorKind::kUnmet);
  EXPECT_EQ(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}").kind, ErrorKind::kUnmet);
  EXPECT_EQ(error_of("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}").kind,
            ErrorKind::kBadFile);
  EXPECT_EQ(error_of("{{ " + std::string(100'000, '-') + "1 }}").kind, ErrorKind::kBadFile);
  std::string blocks;
  for (int i = 0; i < 1000; ++i) blocks += "{% if true %}";
  EXPECT_EQ(error_of(blocks).kind, ErrorKind::kBadFile);
}

TEST(Template, LongFlatChainsAreNoNesting) {
  std::string sum = "{{ 0";
  for (int i = 0; i < 10'000; ++i) sum += " + 1";
  const auto text = render(sum + " }}");
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "10000");
}

// Each of these would take far more memory or time than its steps if something went uncharged.
TEST(Template, GrowthIsChargedBeforeItHappens) {
  for (const char* source : {
           "{{ 'x' * 9000000000000 }}",
           "{{ [1] * 9000000000000 }}",
           "{{ 'ab'.replace('', 'x' * 1000000) | length }}{{ ('x' * 100000).replace('', 'y' * 100000) }}",
           "{{ ('a' * 100000).join('b' * 100000) }}",
           "{{ 'x'.center(999999999999) }}",
           "{{ '%999999999d' % 1 }}",
           "{{ '{:999999999}'.format(1) }}",
           "{{ '%.999999999f' % 1 }}",
           "{{ [1] | batch(999999999999, 'x') | list }}",
           "{{ [1] | slice(999999999999) | list }}",
           "{{ 'x' | indent(999999999999) }}",
           "{{ [[1]] | tojson(indent=999999999999) }}",
           "{{ ('a\n' * 100000) | indent('b' * 100000) }}",
           "{{ 'a\tb'.expandtabs(999999999999) }}",
           "{% set ns = namespace(a=[1]) %}{% for i in range(64) %}{% set ns.a = [ns.a, ns.a] %}{% endfor "
           "%}{{ ns.a }}",
           "{% set ns = namespace(a=[1]) %}{% for i in range(64) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}"
           "{{ ns.a | tojson }}",
           "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(64) %}{% set ns.a = [ns.a, ns.a] %}"
           "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
           "{% set ns = namespace(s='x') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
           "{% set ns = namespace(a=[]) %}{% for i in range(1000) %}{% set ns.a = [ns.a] %}{% endfor %}",
           "{% set ns = namespace(a=none) %}{% for i in range(1000) %}{% set ns.a = [ns.a].index %}{% endfor "
           "%}",
       }) {
    const Error error = error_of(source, {.max_steps = 200'000});
    EXPECT_EQ(error.kind, ErrorKind::kUnmet) << source << "\n" << error.message;
  }
}

TEST(Template, ValuesThatContainThemselvesAreFreed) {
  // The leak checker of the asan build is what this test is for.
  EXPECT_TRUE(
      render("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}{% set a.a = [a] %}"
             "{% macro m() %}{% endmacro %}{% set a.m = m %}"
             "{% for x in [1] %}{% set a.l = loop %}{% set a.c = loop.cycle %}{% endfor %}"
             "{% set a.j = joiner(a) %}{% set a.k = cycler(a, b) %}"));
  EXPECT_TRUE(
      render("{% set ns = namespace(p=none) %}{% for i in range(20000) %}{% set n = namespace(p=ns.p) %}"
             "{% set ns.p = n %}{% endfor %}"));
}

TEST(Template, SearchesStayLinearOnRepetitiveText) {
  // Quadratic searching would take minutes.
  const RenderOptions options{.max_steps = 100'000'000, .max_output_bytes = std::size_t{64} << 20};
  const auto text = render(
      "{% set a = 'a' * 1000000 %}{% set b = 'a' * 500000 ~ 'b' %}"
      "{{ b in a }}{{ a.find(b) }}{{ a.rfind('b' ~ b) }}{{ a.count(b) }}{{ a.split(b) | length }}"
      "{{ a.rsplit(b) | length }}{{ a.replace(b, '') | length }}",
      Value::dict({}), options);
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_EQ(*text, "False-1-10111000000");
}

TEST(Template, StrftimeReadsTheInjectedClock) {
  RenderOptions options;
  options.now = [] {
    std::tm now = {};
    now.tm_year = 99;
    now.tm_mon = 11;
    now.tm_mday = 31;
    return now;
  };
  EXPECT_EQ(render("{{ strftime_now('%d.%m.%Y %999999d %Q %') }}", Value::dict({}), options).value(),
            "31.12.1999 %999999d %Q %");
}

}  // namespace
}  // namespace kvasir::jinja::template_test
