#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "grammar/schema/inhabited.h"
#include "grammar/schema/key_classes.h"
#include "grammar/schema/lowering.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxNodes = 20'000;  // of one object

bool has_key(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::string quoted(const std::string& key) {
  std::string text;
  JsonWriter(text).value(key);
  return text;
}

// Keys that rules name, in their order, then required ones that none names.
std::vector<std::string> named_keys(const ObjectCell& cell) {
  std::vector<std::string> keys;
  for (const MemberRule& rule : cell.rules) {
    for (const auto& property : rule.properties) {
      if (!has_key(keys, property.first)) keys.push_back(property.first);
    }
  }
  for (const std::string& key : cell.required) {
    if (!has_key(keys, key)) keys.push_back(key);
  }
  for (const std::string& key : cell.absent) {
    if (!has_key(keys, key)) keys.push_back(key);
  }
  return keys;
}

// The members of an object as an automaton: named ones in their order, then others. A node knows how many there are,
// as far as that matters.
class ObjectLowering {
 public:
  ObjectLowering(SchemaLowering& lowering, const ObjectCell& cell)
      : lowering_(lowering), builder_(lowering.builder()), cell_(cell), keys_(named_keys(cell)) {}

  Result<Part> lower() {
    KVASIR_TRY(classes_, key_classes(lowering_.evaluator(), cell_, keys_));
    const bool counts = cell_.min_members > 0 || cell_.max_members != kNoLimit;
    const std::size_t bound = cell_.max_members == kNoLimit ? cell_.min_members : cell_.max_members;
    most_counted_ = counts ? std::min(std::max<std::size_t>(bound, 1), keys_.size() + 1) : 1;
    if ((most_counted_ + 1) * (keys_.size() + 2) > kMaxNodes) {
      return make_error(ErrorKind::kUnmet, fmt::format("an object makes more than {} states", kMaxNodes));
    }
    const RuleId members = builder_.declare({});
    KVASIR_CHECKED(add_named(builder_.start_of(members)));
    return builder_.sequence(
        std::array{lowering_.text("{"), builder_.rule(members), lowering_.gap(), lowering_.text("}")});
  }

 private:
  Part member(const Part& key, SchemaName value, bool is_first) {
    const Part rule = builder_.rule(lowering_.rule_of(value));
    const Part gap = lowering_.gap();
    const Part colon = lowering_.text(":");
    if (is_first) return builder_.sequence(std::array{gap, key, gap, colon, gap, rule});
    return builder_.sequence(std::array{gap, lowering_.text(","), gap, key, gap, colon, gap, rule});
  }

  Status add_named(NodeId start) {
    std::vector<NodeId> nodes = {start};  // by members so far
    while (nodes.size() <= most_counted_) nodes.push_back(builder_.add_node());
    for (const std::string& key : keys_) {
      std::vector<NodeId> next;
      while (next.size() <= most_counted_) next.push_back(builder_.add_node());
      const bool is_required = has_key(cell_.required, key);
      const SchemaName value =
          has_key(cell_.absent, key) ? kNoValue : member_value(lowering_.evaluator(), cell_, key);
      for (std::size_t n = 0; n <= most_counted_; ++n) {
        if (!is_required) builder_.add_edges(nodes[n], GrammarBuilder::text(kEmptyText), next[n]);
        if (value == kNoValue || n >= cell_.max_members) continue;
        const Part text = lowering_.text(quoted(key));
        builder_.add_edges(nodes[n], member(text, value, n == 0), next[std::min(n + 1, most_counted_)]);
      }
      nodes = std::move(next);
    }
    for (std::size_t n = 0; n <= most_counted_; ++n) KVASIR_CHECKED(add_others(nodes[n], n));
    return {};
  }

  std::optional<Part> other_member(const std::vector<KeyClass>& classes, bool is_first) {
    std::vector<Part> parts;
    for (const KeyClass& one : classes) {
      const Part key = GrammarBuilder::text(Terminal{one.keys, TextForm::kJsonCanonical});
      parts.push_back(member(key, one.value, is_first));
    }
    if (parts.empty()) return std::nullopt;
    return builder_.choice(parts);
  }

  // Behind num_members named ones (or more, at the last count).
  Status add_others(NodeId from, std::size_t num_members) {
    const bool is_capped = num_members == most_counted_ && cell_.max_members == kNoLimit;
    const std::uint32_t so_far = static_cast<std::uint32_t>(num_members);
    const std::uint32_t min = is_capped || cell_.min_members <= so_far ? 0 : cell_.min_members - so_far;
    if (so_far > cell_.max_members) return {};
    const std::uint32_t max = cell_.max_members == kNoLimit ? kUnbounded : cell_.max_members - so_far;
    if (cell_.contains.size() > 1) {
      return make_error(ErrorKind::kUnmet, "more than one kind of member that has to be there is not supported");
    }
    if (!cell_.contains.empty()) return add_contained(from, num_members == 0, min, max);
    const NodeId end = builder_.add_node(/*is_final=*/true);
    if (min == 0) builder_.add_edges(from, GrammarBuilder::text(kEmptyText), end);
    if (max == 0 || classes_.empty()) return {};
    if (num_members > 0) {
      add_loop(from, min, max, end);
      return {};
    }
    const NodeId behind_first = builder_.add_node();
    builder_.add_edges(from, *other_member(classes_, /*is_first=*/true), behind_first);
    add_loop(behind_first, min == 0 ? 0 : min - 1, max == kUnbounded ? max : max - 1, end);
    return {};
  }

  void add_loop(NodeId from, std::uint32_t min, std::uint32_t max, NodeId end) {
    builder_.add_edges(from, builder_.repeat(*other_member(classes_, /*is_first=*/false), min, max), end);
  }

  // Others, one of which at least is of the wanted kind.
  Status add_contained(NodeId from, bool is_first, std::uint32_t min, std::uint32_t max) {
    const Occurrence& wanted = cell_.contains[0];
    if (min > 1 || max != kUnbounded) {
      return make_error(ErrorKind::kUnmet, "a member that has to be there beside counts is not supported");
    }
    for (const std::string& key : keys_) {
      if (!has_key(cell_.absent, key) && lowering_.evaluator().has_text(wanted.keys, key)) {
        return make_error(ErrorKind::kUnmet,
                          "a member that has to be there, perhaps a named one, is not supported");
      }
    }
    std::vector<KeyClass> of_kind;
    for (const KeyClass& one : classes_) {
      const TermId keys = lowering_.store().all_of({one.keys, wanted.keys});
      const SchemaName value = lowering_.evaluator().names().both(one.value, wanted.value);
      if (value != kNoValue && lowering_.evaluator().derivatives().is_alive(keys)) of_kind.push_back({keys, value});
    }
    if (of_kind.empty()) return {};
    const NodeId end = builder_.add_node(/*is_final=*/true);
    const NodeId found = builder_.add_node();
    builder_.add_edges(from, *other_member(of_kind, is_first), found);
    const NodeId before = builder_.add_node();  // behind others
    builder_.add_edges(from, *other_member(classes_, is_first), before);
    builder_.add_edges(before, *other_member(classes_, /*is_first=*/false), before);
    builder_.add_edges(before, *other_member(of_kind, /*is_first=*/false), found);
    add_loop(found, 0, kUnbounded, end);
    return {};
  }

  SchemaLowering& lowering_;
  GrammarBuilder& builder_;
  const ObjectCell& cell_;
  std::vector<std::string> keys_;
  std::vector<KeyClass> classes_;
  std::size_t most_counted_ = 1;
};

}  // namespace

Result<Part> lower_object(SchemaLowering& lowering, const ObjectCell& cell) {
  return ObjectLowering(lowering, cell).lower();
}

}  // namespace kvasir::grammar
