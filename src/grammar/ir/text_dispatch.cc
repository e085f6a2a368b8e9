#include "grammar/ir/text_dispatch.h"

#include <array>
#include <utility>

namespace kvasir::grammar {

Part text_dispatch(GrammarBuilder& builder, TermStore& store, Derivatives& derivatives, const TextDispatch& dispatch) {
  std::vector<std::string> marks = dispatch.excludes;
  marks.insert(marks.end(), dispatch.ends.begin(), dispatch.ends.end());
  for (const TextDispatch::Trigger& trigger : dispatch.triggers) marks.push_back(trigger.mark);
  FreeText text(store, derivatives, std::move(marks));

  const RuleId rule = builder.declare("text");
  const NodeId start = builder.start_of(rule);
  const NodeId again = dispatch.is_nonempty ? builder.add_node() : start;
  const NodeId end = builder.add_node(/*is_final=*/true);
  NodeId behind = again;
  if (!dispatch.loops) {
    behind = dispatch.ends.empty() ? end : builder.add_node();
    for (const std::string& mark : dispatch.ends) builder.add_edges(behind, builder.text(store.literal(mark)), end);
  }
  // Text and mark are one terminal: a token may hold the end of the one and all of the other.
  const auto add_text = [&](NodeId from, TermId rest) {
    for (const TextDispatch::Trigger& trigger : dispatch.triggers) {
      builder.add_edges(from, builder.sequence(std::array{builder.text(text.until(trigger.mark)), trigger.behind}),
                        behind);
    }
    for (const std::string& mark : dispatch.ends) builder.add_edges(from, builder.text(text.until(mark)), end);
    if (dispatch.ends.empty()) builder.add_edges(from, builder.text(rest), end);
  };
  const TermId rest = text.without_marks();
  add_text(start, dispatch.is_nonempty ? store.without_empty_text(rest) : rest);
  if (again != start && dispatch.loops) add_text(again, rest);
  return builder.rule(rule);
}

}  // namespace kvasir::grammar
