#include "grammar/testing/json_grammar.h"

#include <array>
#include <string_view>

#include "grammar/ir/grammar_builder.h"

namespace kvasir::grammar {
namespace {

using text::regex::CodePointSet;

TermId json_number(TermStore& store) {
  const TermId digit = store.char_class(CodePointSet::of('0', '9'));
  const TermId digits = store.repeat(digit, 1, kUnbounded);
  const TermId whole =
      store.any_of({store.literal("0"), store.concat(store.char_class(CodePointSet::of('1', '9')),
                                                     store.repeat(digit, 0, kUnbounded))});
  const TermId sign = store.optional(store.any_of({store.literal("+"), store.literal("-")}));
  const TermId exponent =
      store.concat(store.any_of({store.literal("e"), store.literal("E")}), store.concat(sign, digits));
  const std::array<TermId, 4> parts = {store.optional(store.literal("-")), whole,
                                       store.optional(store.concat(store.literal("."), digits)),
                                       store.optional(exponent)};
  return store.concat(parts);
}

}  // namespace

Grammar json_grammar(TermStore& store) {
  GrammarBuilder builder(store);
  const RuleId value = builder.declare("value");
  const TermId blank = store.any_of({store.literal(" "), store.literal("\t")});
  const TermId lines = store.concat(store.literal("\n"), store.repeat(blank, 0, 64));
  const Part gap = builder.text(store.any_of({store.repeat(blank, 0, 2), lines}));
  const auto sign = [&](std::string_view text) { return builder.text(store.literal(text)); };
  const auto listed = [&](std::string_view open, const Part& element, std::string_view close) {
    const Part next = builder.sequence(std::array{gap, sign(","), gap, element});
    const Part elements =
        builder.sequence(std::array{gap, element, builder.repeat(next, 0, kUnbounded)});
    const Part any = builder.choice(std::array{builder.text(kEmptyText), elements});
    return builder.sequence(std::array{sign(open), any, gap, sign(close)});
  };
  const Part string = builder.text(Terminal{store.any_text(), TextForm::kJsonFree});
  const Part member = builder.sequence(std::array{string, gap, sign(":"), gap, builder.rule(value)});
  const Part words = builder.text(store.any_of({store.literal("true"), store.literal("false"),
                                                store.literal("null"), json_number(store)}));
  builder.define(value, builder.choice(std::array{string, words, listed("{", member, "}"),
                                                  listed("[", builder.rule(value), "]")}));
  return builder.finish(value);
}

}  // namespace kvasir::grammar
