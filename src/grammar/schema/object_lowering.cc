#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "grammar/schema/inhabited.h"
#include "grammar/schema/key_classes.h"
#include "grammar/schema/lowering.h"
#include "grammar/schema/text_number.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxNodes = 20'000;  // of one object
constexpr std::size_t kMaxKeyBytes = 8192;
constexpr std::size_t kMaxOptionalInRow = 1'000;  // members: as many keys may be at hand (Limits::max_places)
constexpr std::size_t kMaxWanted = 6;      // kinds of member that have to be there
constexpr std::uint32_t kMaxFewKeys = 64;  // of such a kind, that are told one by one

using KeySet = std::unordered_set<std::string_view>;

constexpr std::string_view kDocumentKey = "$schema";

// Keys that rules name, in their order, then required ones that none names.
std::vector<std::string> named_keys(const ObjectCell& cell) {
  std::vector<std::string> keys;
  KeySet known;
  const auto add = [&](const std::string& key) {
    if (known.insert(key).second) keys.push_back(key);
  };
  for (const MemberRule& rule : cell.rules) {
    for (const auto& property : rule.properties) add(property.first);
  }
  for (const std::string& key : cell.required) add(key);
  for (const std::string& key : cell.absent) add(key);
  return keys;
}

// The members of an object as an automaton: named ones in their order, then others. A node knows how many there are,
// as far as that matters, and which of the kinds that have to be there are found (a bit for each). Documents begin with
// the name of their schema, whether the schema says so or not.
class ObjectLowering {
 public:
  ObjectLowering(SchemaLowering& lowering, const ObjectCell& cell, ValueForm& form, const std::string& recorded,
                 const Part* recorded_value)
      : lowering_(lowering),
        builder_(lowering.builder()),
        cell_(cell),
        form_(form),
        recorded_(recorded),
        recorded_value_(recorded_value),
        required_(cell.required.begin(), cell.required.end()),
        absent_(cell.absent.begin(), cell.absent.end()),
        keys_(named_keys(cell)),
        first_separator_(form.separator(/*is_first=*/true)),
        separator_(form.separator(/*is_first=*/false)),
        num_found_sets_(std::size_t{1} << std::min(cell.contains.size(), kMaxWanted)) {}

  Result<Part> lower() {
    if (cell_.contains.size() > kMaxWanted) {
      return make_error(ErrorKind::kUnmet, fmt::format("more than {} kinds of member have to be there", kMaxWanted));
    }
    for (const std::string& key : keys_) {
      if (key.size() <= kMaxKeyBytes) continue;
      return make_error(ErrorKind::kUnmet, fmt::format("a key has {} bytes (at most {})", key.size(), kMaxKeyBytes));
    }
    KVASIR_CHECKED(check_optional_members());
    KVASIR_CHECKED(sort_keys());
    for (const KeyClass& one : classes_) {
      num_others_ = std::min(num_others_ + text_number(lowering_.evaluator(), one.keys), kManyTexts);
    }
    const bool is_document = lowering_.is_at_root() && !lowering_.options().closes_objects;
    has_document_key_ = is_document && num_others_ == kManyTexts && std::ranges::find(keys_, kDocumentKey) == keys_.end();
    if (has_document_key_) keys_.insert(keys_.begin(), std::string(kDocumentKey));
    const bool counts = cell_.min_members > 0 || cell_.max_members != kNoLimit;
    const std::size_t bound = cell_.max_members == kNoLimit ? cell_.min_members : cell_.max_members;
    most_counted_ = counts ? std::max<std::size_t>(bound, 1) : 1;
    if (cell_.contains.empty()) most_counted_ = std::min(most_counted_, keys_.size() + 1);
    if (num_found_sets_ * (most_counted_ + 1) * (keys_.size() + 2) > kMaxNodes) {
      return make_error(ErrorKind::kUnmet, fmt::format("an object makes more than {} states", kMaxNodes), "properties");
    }
    const RuleId members = builder_.declare({});
    const std::vector<NodeId> nodes = add_named(builder_.start_of(members));
    if (cell_.contains.empty() && !counts && num_others_ == kManyTexts) {
      add_uncounted_others(nodes, builder_.add_node(/*is_final=*/true));
    } else if (cell_.contains.empty()) {
      for (std::size_t n = 0; n <= most_counted_; ++n) add_others(nodes[n], n);
    } else {
      add_counted_others(nodes);
    }
    return form_.object(builder_.rule(members));
  }

 private:
  // Nodes by members so far and by what is found of them.
  std::vector<NodeId> node_grid() {
    std::vector<NodeId> nodes;
    while (nodes.size() < (most_counted_ + 1) * num_found_sets_) nodes.push_back(builder_.add_node());
    return nodes;
  }
  std::size_t place(std::size_t num_members, std::size_t found) const {
    return std::min(num_members, most_counted_) * num_found_sets_ + found;
  }
  bool is_capped(std::size_t num_members) const {
    return cell_.max_members != kNoLimit && num_members >= cell_.max_members;
  }

  Status check_optional_members() const {
    std::size_t num_in_row = 0;
    for (const std::string& key : keys_) {
      if (absent_.contains(key)) continue;
      num_in_row = required_.contains(key) ? 0 : num_in_row + 1;
      if (num_in_row <= kMaxOptionalInRow) continue;
      return make_error(ErrorKind::kUnmet, fmt::format("more than {} members in a row may be left out", kMaxOptionalInRow),
                        "properties");
    }
    return {};
  }

  // The value that has to be, if the member counts for all kinds in `claimed`.
  SchemaName claimed_value(SchemaName value, std::size_t claimed) {
    for (std::size_t j = 0; j < cell_.contains.size(); ++j) {
      if ((claimed >> j & 1) != 0) value = lowering_.evaluator().names().both(value, cell_.contains[j].value);
    }
    return value;
  }

  // Finds the classes of keys. Few keys of a kind that has to be there could be used up, so they are named.
  Status sort_keys() {
    SchemaEvaluator& evaluator = lowering_.evaluator();
    KVASIR_TRY(classes_, key_classes(evaluator, cell_, keys_, lowering_.options().closes_objects));
    for (std::size_t claimed = 0; claimed < num_found_sets_ && num_found_sets_ > 1; ++claimed) {
      const std::vector<KeyClass> classes = claimed_classes(claimed);
      for (const KeyClass& one : classes) {
        const std::uint32_t num_keys = text_number(evaluator, one.keys);
        if (num_keys == kManyTexts) continue;
        if (num_keys > kMaxFewKeys) {
          return make_error(ErrorKind::kUnmet, fmt::format("{} keys are possible where some kind of member has to be (at most {})",
                                                           num_keys, kMaxFewKeys));
        }
        for (std::string& key : texts_of(evaluator, one.keys)) {
          if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(std::move(key));
        }
      }
    }
    if (num_found_sets_ > 1) {
      KVASIR_TRY(classes_, key_classes(evaluator, cell_, keys_, lowering_.options().closes_objects));
    }
    return {};
  }

  std::vector<NodeId> add_named(NodeId start) {
    std::vector<NodeId> nodes = node_grid();
    nodes[0] = start;
    for (const std::string& key : keys_) {
      std::vector<NodeId> next = node_grid();
      const bool is_required = required_.contains(key);
      const bool is_out = absent_.contains(key) || is_doubtful(lowering_.evaluator(), cell_, key);
      const SchemaName value = is_out ? kNoValue : member_value(lowering_.evaluator(), cell_, key);
      std::size_t kinds = 0;  // that the key is one of
      for (std::size_t j = 0; j < cell_.contains.size(); ++j) {
        if (lowering_.evaluator().has_text(cell_.contains[j].keys, key)) kinds |= std::size_t{1} << j;
      }
      starts_.clear();
      for (std::size_t at = 0; at < nodes.size(); ++at) {
        if (!is_required) builder_.add_edges(nodes[at], GrammarBuilder::text(kEmptyText), next[at]);
        if (value != kNoValue) add_named_edges(key, value, kinds, at, nodes[at], next);
      }
      nodes = std::move(next);
    }
    return nodes;
  }

  void add_named_edges(const std::string& key, SchemaName value, std::size_t kinds, std::size_t at, NodeId from,
                       const std::vector<NodeId>& next) {
    const std::size_t num_members = at / num_found_sets_;
    const std::size_t found = at % num_found_sets_;
    if (is_capped(num_members)) return;
    for (std::size_t claimed = 0; claimed < num_found_sets_; ++claimed) {
      if ((claimed & ~kinds) != 0 || (claimed & found) != 0) continue;
      const SchemaName wanted = claimed_value(value, claimed);
      if (wanted == kNoValue || (key == recorded_ && recorded_value_ != nullptr && wanted != value)) continue;
      MemberKeys keys = {.name = key, .value = key == recorded_ ? recorded_value_ : nullptr};
      // It may come behind, too, with the other unnamed ones.
      if (has_document_key_ && key == kDocumentKey) keys = {.others = lowering_.store().literal(key)};
      add_member(from, num_members == 0, wanted, next[place(num_members + 1, found | claimed)],
                 [&] { return form_.member(keys, wanted); });
    }
  }

  // Where members of one value that lead to the same node begin.
  struct MemberStart {
    SchemaName value = kAnyValue;
    NodeId to = 0;
    NodeId start = 0;
  };

  // A separator and a member, which is made once for all separators before it unless the two are one text.
  template <typename MakeMember>
  void add_member(NodeId from, bool is_first, SchemaName value, NodeId to, MakeMember&& make_member) {
    const Part& separator = is_first ? first_separator_ : separator_;
    const auto is_same = [&](const MemberStart& one) { return one.value == value && one.to == to; };
    if (const auto found = std::ranges::find_if(starts_, is_same); found != starts_.end()) {
      builder_.add_edges(from, separator, found->start);
      return;
    }
    const Part member = make_member();
    if (!builder_.stay_apart(first_separator_, member) || !builder_.stay_apart(separator_, member)) {
      builder_.add_edges(from, builder_.sequence(std::array{separator, member}), to);
      return;
    }
    starts_.push_back({.value = value, .to = to, .start = builder_.add_node()});
    builder_.add_edges(from, separator, starts_.back().start);
    builder_.add_edges(starts_.back().start, member, to);
  }

  // Requires: some class.
  Part other_member(const std::vector<KeyClass>& classes) {
    std::vector<Part> parts;
    for (const KeyClass& one : classes) {
      parts.push_back(form_.member({.others = one.keys, .may_run_out = one.may_run_out}, one.value));
    }
    return builder_.choice(parts);
  }

  // Any number of others behind num_members named ones (or more, at the last count).
  void add_uncounted_others(const std::vector<NodeId>& nodes, NodeId end) {
    starts_.clear();
    const Part member = other_member(classes_);
    for (std::size_t n = 0; n <= most_counted_; ++n) {
      builder_.add_edges(nodes[n], GrammarBuilder::text(kEmptyText), end);
      add_member(nodes[n], n == 0, kAnyValue, nodes[std::min(n + 1, most_counted_)], [&] { return member; });
    }
  }

  // Behind num_members named ones (or more, at the last count).
  void add_others(NodeId from, std::size_t num_members) {
    const bool is_last_count = num_members == most_counted_ && cell_.max_members == kNoLimit;
    const std::uint32_t so_far = static_cast<std::uint32_t>(num_members);
    const std::uint32_t min = is_last_count || cell_.min_members <= so_far ? 0 : cell_.min_members - so_far;
    if (so_far > cell_.max_members) return;
    std::uint32_t max = cell_.max_members == kNoLimit ? kUnbounded : cell_.max_members - so_far;
    if (num_others_ < kManyTexts) max = std::min(max, num_others_);  // none comes twice
    if (min > max) return;
    const NodeId end = builder_.add_node(/*is_final=*/true);
    if (min == 0) builder_.add_edges(from, GrammarBuilder::text(kEmptyText), end);
    if (max == 0 || classes_.empty()) return;
    const Part member = other_member(classes_);
    const Part next = builder_.sequence(std::array{separator_, member});
    if (num_members > 0) {
      builder_.add_edges(from, builder_.repeat(next, min, max), end);
      return;
    }
    const NodeId behind_first = builder_.add_node();
    builder_.add_edges(from, builder_.sequence(std::array{first_separator_, member}), behind_first);
    builder_.add_edges(behind_first, builder_.repeat(next, min == 0 ? 0 : min - 1, max == kUnbounded ? max : max - 1), end);
  }

  // The unnamed members that count for all kinds in `claimed`.
  std::vector<KeyClass> claimed_classes(std::size_t claimed) {
    std::vector<KeyClass> result;
    for (const KeyClass& one : classes_) {
      std::vector<TermId> keys = {one.keys};
      for (std::size_t j = 0; j < cell_.contains.size(); ++j) {
        if ((claimed >> j & 1) != 0) keys.push_back(cell_.contains[j].keys);
      }
      const TermId both = lowering_.store().all_of(std::move(keys));
      const SchemaName value = claimed_value(one.value, claimed);
      if (value != kNoValue && lowering_.evaluator().derivatives().is_alive(both)) {
        result.push_back({.keys = both, .value = value, .may_run_out = one.may_run_out || claimed != 0});
      }
    }
    return result;
  }

  // Others one by one, until there are enough of each kind.
  void add_counted_others(const std::vector<NodeId>& nodes) {
    const NodeId end = builder_.add_node(/*is_final=*/true);
    for (std::size_t claimed = 0; claimed < num_found_sets_; ++claimed) {
      const std::vector<KeyClass> classes = claimed_classes(claimed);
      if (classes.empty()) continue;
      starts_.clear();
      const Part member = other_member(classes);
      for (std::size_t at = 0; at < nodes.size(); ++at) {
        const std::size_t num_members = at / num_found_sets_;
        const std::size_t found = at % num_found_sets_;
        if (is_capped(num_members) || (claimed & found) != 0) continue;
        add_member(nodes[at], num_members == 0, kAnyValue, nodes[place(num_members + 1, found | claimed)],
                   [&] { return member; });
      }
    }
    for (std::size_t n = 0; n <= most_counted_; ++n) {
      if (n >= cell_.min_members) {
        builder_.add_edges(nodes[place(n, num_found_sets_ - 1)], GrammarBuilder::text(kEmptyText), end);
      }
    }
  }

  SchemaLowering& lowering_;
  GrammarBuilder& builder_;
  const ObjectCell& cell_;
  ValueForm& form_;
  const std::string& recorded_;
  const Part* recorded_value_;
  KeySet required_;
  KeySet absent_;
  std::vector<std::string> keys_;
  const Part first_separator_;  // before the first member
  const Part separator_;
  std::vector<MemberStart> starts_;  // of the key at hand
  bool has_document_key_ = false;
  std::uint32_t num_others_ = 0;  // keys that are not named; kManyTexts for more
  std::vector<KeyClass> classes_;
  std::size_t most_counted_ = 1;
  std::size_t num_found_sets_ = 1;
};

}  // namespace

Result<Part> lower_object(SchemaLowering& lowering, const ObjectCell& cell, ValueForm& form, const std::string& recorded,
                          const Part* recorded_value) {
  return ObjectLowering(lowering, cell, form, recorded, recorded_value).lower();
}

}  // namespace kvasir::grammar
