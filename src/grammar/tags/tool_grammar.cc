#include "grammar/tags/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/ir/grammar_builder.h"
#include "grammar/regex/derivatives.h"
#include "grammar/schema/evaluator.h"
#include "grammar/schema/json_value.h"
#include "grammar/schema/lowering.h"
#include "grammar/tags/call_forms.h"
#include "grammar/tags/call_writer.h"
#include "grammar/tags/tool_call_syntax.h"

namespace kvasir::grammar {
namespace {

// Puts calls, texts and thoughts together.
class AnswerWriter {
 public:
  AnswerWriter(TermStore& store, const ToolGuide& guide, const ToolCallSyntax& syntax, std::span<const ControlToken> tokens)
      : store_(store),
        guide_(guide),
        syntax_(syntax),
        builder_(store),
        marks_(builder_, store, tokens),
        writer_(builder_, store, marks_, syntax) {}

  Result<Grammar> write(const AnswerText& text) {
    KVASIR_TRY(const Part call, writer_.any_call(guide_.tools));
    const RuleId call_rule = builder_.declare("call");
    builder_.define(call_rule, call);
    const Part body = GrammarBuilder::rule(call_rule);
    const RuleId answer = builder_.declare("answer");
    const Part calls = all_calls(body, guide_.prompt_mark.empty() ? Start::kFresh : Start::kBegun);
    Part whole = calls;
    if (!guide_.is_demanded && text.is_free) whole = text_or_calls(body, calls);
    if (!guide_.is_demanded && !text.is_free) {
      KVASIR_TRY(const Part other, formed_text(text));
      whole = choice({calls, other});
    }
    builder_.define(answer, sequence({thoughts(), whole}));
    return builder_.finish(answer);
  }

 private:
  enum class Start : std::uint8_t {
    kFresh,       // nothing but thoughts came before
    kBegun,       // the mark of the first call came
    kBehindText,  // a call needs its mark
  };

  Part sequence(std::vector<Part> parts) { return builder_.sequence(parts); }
  Part choice(std::vector<Part> parts) { return builder_.choice(parts); }
  static Part nothing() { return GrammarBuilder::text(kEmptyText); }
  Part star(const Part& part) { return builder_.repeat(part, 0, kUnbounded); }

  // A mark behind something, unless the answer ends with it.
  Part end_mark(std::string_view mark) {
    return mark.empty() || marks_.ends_answer(mark) ? nothing() : sequence({writer_.gap(), marks_.part(mark)});
  }

  // Thoughts with the mark behind them. A block that the prompt has opened may be opened once more.
  Part thoughts() {
    if (guide_.thoughts.empty()) return nothing();
    std::vector<Part> blocks, ends;
    std::vector<std::string_view> closes;
    for (const auto& [open, close] : guide_.thoughts) {
      const TermId inside = texts_without(store_, std::array<std::string_view, 1>{close});
      blocks.push_back(sequence({marks_.part(open), GrammarBuilder::text(inside), marks_.part(close)}));
      ends.push_back(marks_.part(close));
      closes.push_back(close);
    }
    const Part behind = sequence({writer_.gap(), marks_.part(syntax_.next_open)});
    if (!guide_.starts_in_thoughts) return choice({nothing(), sequence({choice(std::move(blocks)), behind})});
    return sequence({GrammarBuilder::text(texts_without(store_, closes)), choice(std::move(ends)), behind});
  }

  // The mark that opens a block of calls.
  Part open_mark() {
    std::vector<Part> opens;
    for (std::size_t i = 0; i < syntax_.num_opens; ++i) opens.push_back(marks_.part(syntax_.open[i]));
    return choice(std::move(opens));
  }
  // Blanks may stand at the inner side of marks that are not a part of a name.
  Part inner_gap() {
    const bool is_part = syntax_.layout == ToolCallLayout::kNamedJson || syntax_.layout == ToolCallLayout::kDict ||
                         (!syntax_.call_open.empty() && syntax_.call_open == syntax_.open[0]);
    return is_part ? nothing() : writer_.gap();
  }

  // What stands between the marks around a block.
  Part block_body(const Part& call) {
    const Part gap = writer_.gap();
    const bool has_many = guide_.is_parallel && !syntax_.is_single;
    if (syntax_.writes_list) {
      const Part comma = GrammarBuilder::text(store_.literal(","));
      const Part more = has_many ? star(sequence({gap, comma, gap, call})) : nothing();
      return sequence({GrammarBuilder::text(store_.literal("[")), gap, call, more, gap,
                       GrammarBuilder::text(store_.literal("]"))});
    }
    if (!syntax_.has_many_calls || !has_many) return call;
    return sequence({call, star(sequence({gap, call}))});
  }
  Part block(const Part& open, const Part& call) {
    return sequence({open, inner_gap(), block_body(call), end_mark(syntax_.close)});
  }

  // All calls of an answer.
  Part all_calls(const Part& call, Start start) {
    const Part marked = syntax_.open[0].empty() ? GrammarBuilder::text(kNothing) : block(open_mark(), call);
    Part first = start == Start::kBegun ? block(nothing(), call) : marked;
    if (start == Start::kFresh && syntax_.writes_bare) first = choice({block_body(call), marked});
    std::vector<Part> parts;
    const bool has_section = !syntax_.section_open.empty();
    if (has_section && start != Start::kBegun) {
      parts.push_back(sequence({marks_.part(syntax_.section_open), writer_.gap()}));
    }
    parts.push_back(first);
    const bool repeats = guide_.is_parallel && !syntax_.is_single && !syntax_.writes_list && !syntax_.open[0].empty() &&
                         !marks_.ends_answer(syntax_.close);
    if (repeats) parts.push_back(star(sequence({writer_.gap(), marked})));
    if (has_section) parts.push_back(end_mark(syntax_.section_close));
    return sequence(std::move(parts));
  }

  std::vector<std::string_view> call_marks() const {
    std::vector<std::string_view> marks = {syntax_.section_open};
    marks.insert(marks.end(), syntax_.open.begin(), syntax_.open.end());
    for (const ReasoningMarks& known : reasoning_marks()) marks.push_back(known.open);
    if (!syntax_.text_close.empty()) marks.push_back(syntax_.text_close);
    return marks;
  }

  // A text of a form that somebody demands.
  Result<Part> formed_text(const AnswerText& text) {
    if (syntax_.may_be_bare) {
      return make_error(ErrorKind::kUnmet, fmt::format("a form of the answer beside tools of '{}', whose calls need no mark",
                                                       syntax_.family));
    }
    const TermId allowed = texts_without(store_, call_marks());
    if (text.schema.empty()) return with_frame(GrammarBuilder::text(store_.all_of({text.texts, allowed})));
    KVASIR_TRY(schema_, read_json(text.schema));
    Derivatives derivatives(store_);
    SchemaEvaluator evaluator(*schema_, store_, derivatives);
    SchemaLowering lowering(evaluator, builder_, text.options);
    lowering.set_form(std::make_unique<ConfinedJson>(lowering, allowed));
    KVASIR_TRY(const RuleId rule, lowering.lower(evaluator.name_of(*schema_)));
    if (!builder_.rules_with_text()[rule]) {
      return make_error(ErrorKind::kUsage, "the guide has no text: nothing satisfies it");
    }
    return with_frame(GrammarBuilder::rule(rule));
  }
  // The last text of an answer.
  Part with_frame(const Part& text) { return sequence({text_mark(0), text, optional_end(syntax_.text_close)}); }

  // Blocks of thoughts, in which no call is read, among texts without marks. The last block may have no end.
  TermId texts_and_thoughts(TermId texts) {
    std::vector<TermId> blocks, begun;
    for (const ReasoningMarks& known : reasoning_marks()) {
      const TermId inside = texts_without(store_, std::array<std::string_view, 1>{known.close});
      const TermId open = store_.concat(store_.literal(known.open), inside);
      begun.push_back(open);
      blocks.push_back(store_.concat(open, store_.literal(known.close)));
    }
    const TermId led = store_.repeat(store_.concat(texts, store_.any_of(std::move(blocks))), 0, kUnbounded);
    const std::array<TermId, 3> parts = {led, texts, store_.optional(store_.any_of(std::move(begun)))};
    return store_.concat(parts);
  }

  // Text without marks of calls, which does not begin as a call without a mark does.
  TermId free_text() {
    const TermId texts = texts_without(store_, call_marks());
    if (!syntax_.may_be_bare) return texts_and_thoughts(texts);
    std::vector<TermId> begun;
    if (syntax_.layout == ToolCallLayout::kNamedJson) {
      for (const GuideTool& tool : guide_.tools) begun.push_back(store_.literal(tool.name));
    } else {
      if (syntax_.layout == ToolCallLayout::kJson) begun.push_back(store_.literal("{"));
      if (syntax_.may_be_list) begun.push_back(store_.literal("["));
    }
    const TermId blank = store_.any_of({store_.literal(" "), store_.literal("\t"), store_.literal("\n"), store_.literal("\r")});
    const std::array<TermId, 3> call = {store_.repeat(blank, 0, kUnbounded), store_.any_of(std::move(begun)), store_.any_text()};
    return store_.without(texts, store_.concat(call));
  }

  // Calls, a text, or calls behind a text.
  Part text_or_calls(const Part& call, const Part& calls) {
    const Part text = GrammarBuilder::text(free_text());
    const Part more = all_calls(call, Start::kBehindText);
    const RuleId rule = builder_.declare("text");
    if (syntax_.text_open[0].empty()) {
      // One automaton: while a text goes on, there is one place.
      const NodeId behind = builder_.add_node(/*is_final=*/true);
      builder_.add_edges(builder_.start_of(rule), text, behind);
      builder_.add_edges(behind, more, builder_.add_node(/*is_final=*/true));
    } else {
      const Part last = with_frame(text);
      const std::size_t lead = syntax_.text_open[1].empty() ? 0 : 1;
      const Part first = sequence({text_mark(lead), text, marks_.part(syntax_.text_close), marks_.part(syntax_.next_open), more});
      builder_.define(rule, choice({last, first}));
    }
    return choice({GrammarBuilder::rule(rule), calls});
  }
  Part optional_end(std::string_view mark) {
    return mark.empty() || marks_.ends_answer(mark) ? nothing() : choice({nothing(), marks_.part(mark)});
  }
  // The prompt may have begun the mark.
  Part text_mark(std::size_t place) {
    std::string_view mark = syntax_.text_open[place];
    if (!guide_.prompt_mark.empty() && mark.starts_with(guide_.prompt_mark)) mark.remove_prefix(guide_.prompt_mark.size());
    return marks_.part(mark);
  }

  TermStore& store_;
  const ToolGuide& guide_;
  const ToolCallSyntax& syntax_;
  GrammarBuilder builder_;
  MarkWriter marks_;
  CallWriter writer_;
  std::unique_ptr<const JsonValue> schema_;  // of a text
};

}  // namespace

Result<Grammar> grammar_of_tools(TermStore& store, const ToolGuide& guide, std::span<const ControlToken> tokens,
                                 const AnswerText& text) {
  const auto syntaxes = tool_call_syntaxes();
  const auto syntax = std::ranges::find(syntaxes, std::string_view(guide.family), &ToolCallSyntax::family);
  if (syntax == syntaxes.end()) {
    return make_error(ErrorKind::kUsage, fmt::format("tools: no family '{}' is known", guide.family));
  }
  if (guide.tools.empty()) return make_error(ErrorKind::kUsage, "tools: there are none to call");
  KVASIR_TRY(Grammar grammar, AnswerWriter(store, guide, *syntax, tokens).write(text));
  if (store.is_exhausted()) return make_error(ErrorKind::kUnmet, "tools: their schemas make too many states");
  return grammar;
}

}  // namespace kvasir::grammar
