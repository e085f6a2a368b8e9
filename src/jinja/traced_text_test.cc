#include "jinja/traced_text.h"

#include <gtest/gtest.h>

#include <string>

#include "jinja/template.h"

namespace kvasir::jinja::traced_text_test {
namespace {

// The output with its foreign stretches in ‹ ›.
std::string traced(std::string_view source, const std::string& user = "ab cd\n<x>") {
  const auto parsed = Template::parse(source);
  if (!parsed) return parsed.error().message;
  const Value list = Value::list({Value::string("one"), Value::string("two")});
  const Value foreign = as_foreign(Value::dict({{Value::string("u"), Value::string(user)},
                                                {Value::string("list"), list},
                                                {Value::string("n"), Value::integer(7)}}));
  std::vector<Value::Entry> globals;
  for (const auto& [key, value] : foreign.as_dict().entries()) {
    globals.emplace_back(Value::string(key.as_string()), value);
  }
  const auto text = parsed->render_traced(Value::dict(std::move(globals)));
  if (!text) return text.error().message;
  std::string shown;
  std::size_t position = 0;
  for (const TextSpan& span : text->foreign()) {
    shown += text->bytes().substr(position, span.begin - position) + "‹";
    shown += text->bytes().substr(span.begin, span.end - span.begin) + "›";
    position = span.end;
  }
  return shown + text->bytes().substr(position);
}

TEST(TracedText, JoiningTellsWhatIsWhose) {
  EXPECT_EQ(traced("a{{ u }}b", "X"), "a‹X›b");
  EXPECT_EQ(traced("{{ '<' + u + '>' }}", "X"), "<‹X›>");
  EXPECT_EQ(traced("{{ '<' ~ u ~ n ~ '>' }}", "X"), "<‹X›7>");
  EXPECT_EQ(traced("{{ list | join('|') }}"), "‹one›|‹two›");
  EXPECT_EQ(traced("{{ '|'.join(list) }}"), "‹one›|‹two›");
  EXPECT_EQ(traced("{{ ('-' + u) * 2 }}", "X"), "-‹X›-‹X›");
  EXPECT_EQ(traced("{% set s %}[{{ u }}]{% endset %}{{ s }}", "X"), "[‹X›]");
  EXPECT_EQ(traced("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(u) }}", "X"), "[‹X›]");
  EXPECT_EQ(traced("{% for c in 'p' + u %}{{ c }}.{% endfor %}", "Xé"), "p.‹X›.‹é›.");
  EXPECT_EQ(
      traced("{% set ns = namespace(t='') %}{% for i in list %}{% set ns.t = ns.t + '+' + i %}{% endfor %}"
             "{{ ns.t }}"),
      "+‹one›+‹two›");
}

TEST(TracedText, CuttingKeepsIt) {
  EXPECT_EQ(traced("{{ ('<' + u + '>')[1:-1] }}", "XY"), "‹XY›");
  EXPECT_EQ(traced("{{ ('<' + u + '>')[::-1] }}", "XY"), ">‹YX›<");
  EXPECT_EQ(traced("{{ ('<' + u)[0] }}{{ ('<' + u)[1] }}", "é"), "<‹é›");
  EXPECT_EQ(traced("{{ ('  ' + u + '  ') | trim }}.{{ ('  ' + u).lstrip() }}", "X "), "‹X›.‹X ›");
  EXPECT_EQ(traced("{{ (u + '-b-' + u).split('-') | join('+') }}", "X"), "‹X›+b+‹X›");
  EXPECT_EQ(traced("{{ (u + '-b').rsplit('-', 1)[1] }}{{ (u + '-b').partition('-')[0] }}", "X"), "b‹X›");
  EXPECT_EQ(traced("{{ ('a\n' + u).splitlines()[1] }}", "X"), "‹X›");
  EXPECT_EQ(traced("{{ ('a' + u).removeprefix('a') }}{{ (u + 'a').removesuffix('a') }}", "X"), "‹XX›");
  EXPECT_EQ(traced("{{ (u + 'own') | truncate(6, true, '!', 0) }}", "XXXX"), "‹XXXX›o!");
}

TEST(TracedText, ReplacingKeepsIt) {
  EXPECT_EQ(traced("{{ u.replace('b', '<b>') }}", "abc"), "‹a›<b>‹c›");
  EXPECT_EQ(traced("{{ 'a{}c'.replace('{}', u) }}", "X"), "a‹X›c");
  EXPECT_EQ(traced("{{ u | replace('-', '') }}", "<n-o>"), "‹<no>›");
  EXPECT_EQ(traced("{{ u.replace('', '.') }}", "ab"), ".‹a›.‹b›.");
}

TEST(TracedText, FormattingIsForeignWhereItsValuesAre) {
  EXPECT_EQ(traced("{{ '<%s>' % u }}", "X"), "<‹X›>");
  EXPECT_EQ(traced("{{ '<%s|%d>' | format(u, 3) }}", "X"), "<‹X›|‹3›>");
  EXPECT_EQ(traced("{{ '<{}>'.format(u) }}", "X"), "<‹X›>");
  EXPECT_EQ(traced("{{ '<{}>'.format('own') }}", "X"), "<own>");
  EXPECT_EQ(traced("{{ ('a\n' + u) | indent(2) }}", "X"), "a\n  ‹X›");
  EXPECT_EQ(traced("{{ u.center(5) }}{{ u.ljust(2, '.') }}", "X"), "  ‹X›  ‹X›.");
}

TEST(TracedText, WhatHasNoRuleIsForeignAsItsArguments) {
  EXPECT_EQ(traced("{{ ('a' + u) | upper }}", "x"), "‹AX›");
  EXPECT_EQ(traced("{{ 'a' | upper }}"), "A");
  EXPECT_EQ(traced("{{ {'k': u} | tojson }}", "x"), "‹{\"k\": \"x\"}›");
  EXPECT_EQ(traced("{{ [u] }}", "x"), "‹['x']›");
  EXPECT_EQ(traced("{{ ['own'] }}{{ {'k': 1} | tojson }}"), "['own']{\"k\": 1}");
  EXPECT_EQ(traced("{{ {'r': '<r>', 'u': u}.r }}{{ {'r': '<r>', 'u': u}.get('r') }}"), "<r><r>");
}

TEST(TracedText, ATemplateSeesTheTextAsItCame) {
  EXPECT_EQ(traced("{{ u.startswith('<x>') }}{{ u.endswith('>') }}{{ u | length }}{{ u == '<x>y>' }}"
                   "{{ 'x>y' in u }}{{ u.find('y') }}{{ u.count('>') }}",
                   "<x>y>"),
            "TrueTrue5TrueTrue32");
}

TEST(TracedText, IsCutWithItsSpans) {
  TracedText text;
  text.append("ab");
  text.append_foreign("cd");
  text.append("ef");
  text.cut(3);
  ASSERT_EQ(text.foreign().size(), 1u);
  EXPECT_EQ(text.bytes(), "abc");
  EXPECT_EQ(text.foreign()[0].end, 3u);
  text.cut(2);
  EXPECT_TRUE(text.foreign().empty());
}

}  // namespace
}  // namespace kvasir::jinja::traced_text_test
