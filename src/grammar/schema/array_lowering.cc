#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "grammar/schema/lowering.h"
#include "grammar/schema/text_number.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxNodes = 20'000;   // of one array
constexpr std::size_t kMaxContains = 6;

// The elements of an array as an automaton: a node knows how many there are, as far as that matters, and how many of
// them are of each wanted kind.
class ArrayLowering {
 public:
  ArrayLowering(SchemaLowering& lowering, const ArrayCell& cell)
      : lowering_(lowering), builder_(lowering.builder()), cell_(cell) {
    for (const Occurrence& wanted : cell.contains) {
      if (wanted.min > 0 || wanted.max != kNoLimit) wanted_.push_back(wanted);
    }
  }

  Result<Part> lower() {
    const RuleId elements = builder_.declare({});
    const NodeId start = builder_.start_of(elements);
    if (cell_.is_unique && cell_.max_items > 1) KVASIR_CHECKED(record_elements());
    if (wanted_.empty()) {
      if (cell_.min_items <= cell_.max_items) add_elements(start);
    } else {
      KVASIR_CHECKED(add_counted(start));
    }
    if (!status_) return std::unexpected(status_.error());
    return lowering_.in_scope("[", builder_.rule(elements), "]");
  }

 private:
  // Elements are recorded. There are no more of them than there are values, wherever that could be met.
  Status record_elements() {
    is_recorded_ = true;
    for (std::size_t i = 0; i <= cell_.prefix.size() && i < cell_.max_items; ++i) {
      const SchemaName value = value_at(i);
      if (value == kNoValue) break;
      KVASIR_TRY(const std::uint32_t num_values, record(value));
      if (num_values == kManyTexts) continue;
      const bool is_rest = i == cell_.prefix.size();
      if (is_rest || num_values <= i) cell_.max_items = std::min(cell_.max_items, is_rest ? num_values : static_cast<std::uint32_t>(i));
      has_few_values_ = true;
    }
    if (!has_few_values_ || wanted_.empty()) return {};
    return make_error(ErrorKind::kUnmet, "uniqueItems is not supported for few values beside contains", "uniqueItems");
  }

  // Notes how the values of a set are recorded; how many there are.
  Result<std::uint32_t> record(SchemaName value) {
    const auto [found, is_new] = recorded_.try_emplace(value);
    if (!is_new) return found->second.num_values;
    static constexpr TextMark kElement = {.kind = TextMark::Kind::kRecord, .group = 1};
    KVASIR_TRY(found->second, lowering_.recorded_values(value, kElement));
    const RuleId rule = builder_.declare({});
    builder_.define(rule, found->second.part);
    found->second.part = builder_.rule(rule);
    return found->second.num_values;
  }

  // The element at a place, with what separates it from the one before.
  Part element(std::size_t index, const Part& part) {
    if (index == 0) return builder_.sequence(std::array{lowering_.gap(), part});
    return builder_.sequence(std::array{lowering_.gap(), lowering_.text(","), lowering_.gap_behind_mark(), part});
  }
  Part element(std::size_t index, SchemaName value) {
    if (!is_recorded_ || value == kNoValue) return element(index, builder_.rule(lowering_.rule_of(value)));
    const auto num_values = record(value);
    if (!num_values) {
      if (status_) status_ = std::unexpected(num_values.error());
      return GrammarBuilder::text(kNothing);
    }
    if (*num_values < kManyTexts && !wanted_.empty() && status_) {
      status_ = make_error(ErrorKind::kUnmet, "uniqueItems is not supported for few values beside contains", "uniqueItems");
    }
    return element(index, recorded_.at(value).part);
  }
  SchemaName value_at(std::size_t index) const { return index < cell_.prefix.size() ? cell_.prefix[index] : cell_.rest; }

  // Elements of the prefix one by one, the others in a loop.
  void add_elements(NodeId from) {
    const NodeId end = builder_.add_node(/*is_final=*/true);
    const std::size_t num_single = std::max<std::size_t>(cell_.prefix.size(), 1);
    for (std::size_t i = 0; i < num_single; ++i) {
      if (i >= cell_.min_items) builder_.add_edges(from, GrammarBuilder::text(kEmptyText), end);
      if (i >= cell_.max_items) return;
      const NodeId to = builder_.add_node();
      builder_.add_edges(from, element(i, value_at(i)), to);
      from = to;
    }
    const auto count = static_cast<std::uint32_t>(num_single);
    const std::uint32_t min = cell_.min_items > count ? cell_.min_items - count : 0;
    const std::uint32_t max = cell_.max_items == kNoLimit ? kUnbounded : cell_.max_items - count;
    builder_.add_edges(from, builder_.repeat(element(num_single, cell_.rest), min, max), end);
  }

  // How many elements of a kind are told apart.
  static std::size_t cap(const Occurrence& wanted) { return wanted.max == kNoLimit ? wanted.min : wanted.max; }

  // The counts behind an element that is of all kinds in `claimed`; empty: it may not be so.
  std::optional<std::vector<std::size_t>> counts_behind(const std::vector<std::size_t>& counts, std::size_t index,
                                                        std::size_t claimed) const {
    std::vector<std::size_t> behind = counts;
    for (std::size_t j = 0; j < wanted_.size(); ++j) {
      if ((claimed >> j & 1) == 0) continue;
      if (index < wanted_[j].from || counts[j] == cap(wanted_[j])) return std::nullopt;
      ++behind[j];
    }
    return behind;
  }

  // What an element may be that is of all kinds in `claimed`, and of no other kind that has an upper limit.
  std::vector<SchemaName> values_of(std::size_t index, std::size_t claimed) {
    SchemaNames& names = lowering_.evaluator().names();
    std::vector<SchemaName> values = {value_at(index)};
    for (std::size_t j = 0; j < wanted_.size(); ++j) {
      std::vector<SchemaName> of_kind = {kAnyValue};
      if ((claimed >> j & 1) != 0) {
        of_kind = {wanted_[j].value};
      } else if (wanted_[j].max != kNoLimit && index >= wanted_[j].from) {
        of_kind = names.complement(wanted_[j].value);
      }
      std::vector<SchemaName> narrowed;
      for (const SchemaName value : values) {
        for (const SchemaName kind : of_kind) {
          const SchemaName both = names.both(value, kind);
          if (both != kNoValue) narrowed.push_back(both);
        }
      }
      values = std::move(narrowed);
    }
    return values;
  }

  bool may_end(std::size_t num_elements, const std::vector<std::size_t>& counts) const {
    if (num_elements < cell_.min_items || num_elements > cell_.max_items) return false;
    for (std::size_t j = 0; j < wanted_.size(); ++j) {
      if (counts[j] < wanted_[j].min) return false;
    }
    return true;
  }

  // Nodes by how many elements there are and how many of them are of each wanted kind.
  Status add_counted(NodeId start) {
    if (wanted_.size() > kMaxContains) {
      return make_error(ErrorKind::kUnmet, fmt::format("an array has more than {} contains", kMaxContains), "contains");
    }
    std::size_t most_elements = std::max({cell_.prefix.size(), std::size_t{cell_.min_items}, std::size_t{1},
                                          cell_.max_items == kNoLimit ? std::size_t{0} : std::size_t{cell_.max_items}});
    std::size_t num_counts = 1;
    for (const Occurrence& wanted : wanted_) {
      most_elements = std::max<std::size_t>(most_elements, wanted.from);
      num_counts = std::min(num_counts * (cap(wanted) + 1), kMaxNodes + 1);
    }
    if (num_counts * (most_elements + 1) > kMaxNodes) {
      return make_error(ErrorKind::kUnmet, fmt::format("contains beside counts makes more than {} states", kMaxNodes), "contains");
    }
    std::vector<NodeId> nodes = {start};
    while (nodes.size() < num_counts * (most_elements + 1)) nodes.push_back(builder_.add_node());
    const NodeId end = builder_.add_node(/*is_final=*/true);
    for (std::size_t at = 0; at < nodes.size(); ++at) {
      const std::size_t index = at / num_counts;
      const std::vector<std::size_t> counts = counts_at(at % num_counts);
      if (may_end(index, counts)) builder_.add_edges(nodes[at], GrammarBuilder::text(kEmptyText), end);
      const bool is_last = index == most_elements;
      if (is_last && cell_.max_items != kNoLimit) continue;
      const std::size_t next = is_last ? index : index + 1;
      for (std::size_t claimed = 0; claimed < std::size_t{1} << wanted_.size(); ++claimed) {
        const auto behind = counts_behind(counts, index, claimed);
        if (!behind) continue;
        for (const SchemaName value : values_of(index, claimed)) {
          builder_.add_edges(nodes[at], element(index, value), nodes[next * num_counts + place_of(*behind)]);
        }
      }
    }
    return {};
  }

  std::vector<std::size_t> counts_at(std::size_t place) const {
    std::vector<std::size_t> counts;
    for (const Occurrence& wanted : wanted_) {
      counts.push_back(place % (cap(wanted) + 1));
      place /= cap(wanted) + 1;
    }
    return counts;
  }
  std::size_t place_of(const std::vector<std::size_t>& counts) const {
    std::size_t place = 0;
    for (std::size_t j = wanted_.size(); j > 0; --j) place = place * (cap(wanted_[j - 1]) + 1) + counts[j - 1];
    return place;
  }

  SchemaLowering& lowering_;
  GrammarBuilder& builder_;
  ArrayCell cell_;
  std::vector<Occurrence> wanted_;
  bool is_recorded_ = false;
  bool has_few_values_ = false;
  std::map<SchemaName, SchemaLowering::RecordedValues> recorded_;
  Status status_;
};

}  // namespace

Result<Part> lower_array(SchemaLowering& lowering, const ArrayCell& cell) {
  return ArrayLowering(lowering, cell).lower();
}

}  // namespace kvasir::grammar
