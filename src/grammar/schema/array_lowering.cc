#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxNodes = 20'000;  // of one array

// The elements of an array as an automaton: a node knows how many there are, as far as that matters.
class ArrayLowering {
 public:
  ArrayLowering(SchemaLowering& lowering, const ArrayCell& cell)
      : lowering_(lowering), builder_(lowering.builder()), cell_(cell) {}

  Result<Part> lower() {
    if (cell_.is_unique && cell_.max_items > 1) {
      return make_error(ErrorKind::kUnmet, "uniqueItems is not supported");
    }
    if (cell_.contains.size() > 1) {
      return make_error(ErrorKind::kUnmet, "more than one contains for an array is not supported");
    }
    const RuleId elements = builder_.declare({});
    KVASIR_CHECKED(cell_.contains.empty() ? add_elements(builder_.start_of(elements))
                                          : add_counted(builder_.start_of(elements)));
    return builder_.sequence(std::array{lowering_.text("["), builder_.rule(elements), lowering_.gap(),
                                        lowering_.text("]")});
  }

 private:
  // The element at a place, with what separates it from the one before.
  Part element(std::size_t index, SchemaName value) {
    const Part part = builder_.rule(lowering_.rule_of(value));
    if (index == 0) return builder_.sequence(std::array{lowering_.gap(), part});
    return builder_.sequence(std::array{lowering_.gap(), lowering_.text(","), lowering_.gap(), part});
  }
  SchemaName value_at(std::size_t index) const { return index < cell_.prefix.size() ? cell_.prefix[index] : cell_.rest; }

  // Elements of the prefix one by one, the others in a loop.
  Status add_elements(NodeId from) {
    const NodeId end = builder_.add_node(/*is_final=*/true);
    const std::size_t num_single = std::max<std::size_t>(cell_.prefix.size(), 1);
    for (std::size_t i = 0; i < num_single; ++i) {
      if (i >= cell_.min_items) builder_.add_edges(from, GrammarBuilder::text(kEmptyText), end);
      if (i >= cell_.max_items) return {};
      const NodeId to = builder_.add_node();
      builder_.add_edges(from, element(i, value_at(i)), to);
      from = to;
    }
    const auto count = static_cast<std::uint32_t>(num_single);
    const std::uint32_t min = cell_.min_items > count ? cell_.min_items - count : 0;
    const std::uint32_t max = cell_.max_items == kNoLimit ? kUnbounded : cell_.max_items - count;
    builder_.add_edges(from, builder_.repeat(element(num_single, cell_.rest), min, max), end);
    return {};
  }

  // Nodes by how many elements there are and how many of them are of the wanted kind.
  Status add_counted(NodeId start) {
    const Occurrence& wanted = cell_.contains[0];
    const std::size_t most_counted = wanted.max == kNoLimit ? wanted.min : std::size_t{wanted.max} + 1;
    const std::size_t most_elements =
        std::max({cell_.prefix.size(), std::size_t{cell_.min_items}, std::size_t{1},
                  cell_.max_items == kNoLimit ? std::size_t{0} : std::size_t{cell_.max_items}});
    if ((most_counted + 1) * (most_elements + 1) > kMaxNodes) {
      return make_error(ErrorKind::kUnmet, fmt::format("contains beside counts makes more than {} states", kMaxNodes));
    }
    SchemaNames& names = lowering_.evaluator().names();
    std::vector<std::vector<NodeId>> nodes(most_elements + 1);
    for (std::size_t i = 0; i <= most_elements; ++i) {
      for (std::size_t n = 0; n <= most_counted; ++n) {
        const bool is_counted_enough = n >= wanted.min && (wanted.max == kNoLimit || n <= wanted.max);
        const bool is_end = i >= cell_.min_items && i <= cell_.max_items && is_counted_enough;
        nodes[i].push_back(i == 0 && n == 0 ? start : builder_.add_node(is_end));
        if (i == 0 && n == 0 && is_end) {
          builder_.add_edges(start, GrammarBuilder::text(kEmptyText), builder_.add_node(/*is_final=*/true));
        }
      }
    }
    for (std::size_t i = 0; i <= most_elements; ++i) {
      const bool is_last = i == most_elements;
      if (is_last && cell_.max_items != kNoLimit) break;
      const std::size_t next = is_last ? i : i + 1;
      for (std::size_t n = 0; n <= most_counted; ++n) {
        const SchemaName of_kind = names.both(value_at(i), wanted.value);
        builder_.add_edges(nodes[i][n], element(i, of_kind), nodes[next][std::min(n + 1, most_counted)]);
        if (wanted.max == kNoLimit) {
          builder_.add_edges(nodes[i][n], element(i, value_at(i)), nodes[next][n]);
          continue;
        }
        for (const SchemaName other : names.complement(wanted.value)) {
          builder_.add_edges(nodes[i][n], element(i, names.both(value_at(i), other)), nodes[next][n]);
        }
      }
    }
    return {};
  }

  SchemaLowering& lowering_;
  GrammarBuilder& builder_;
  const ArrayCell& cell_;
};

}  // namespace

Result<Part> lower_array(SchemaLowering& lowering, const ArrayCell& cell) {
  return ArrayLowering(lowering, cell).lower();
}

}  // namespace kvasir::grammar
