#include "grammar/schema/key_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace kvasir::grammar {
namespace {

// Of keys that no rule's properties name, in the class where `matched` patterns match.
SchemaName value_in_class(SchemaEvaluator& evaluator, const ObjectCell& cell, const std::vector<TermId>& patterns,
                          std::size_t matched) {
  SchemaNames& names = evaluator.names();
  SchemaName value = kAnyValue;
  for (const MemberRule& rule : cell.rules) {
    bool is_known = false;
    for (const auto& [pattern, schema] : rule.patterns) {
      const auto place = static_cast<std::size_t>(std::ranges::find(patterns, pattern) - patterns.begin());
      if ((matched >> place & 1) == 0) continue;
      is_known = true;
      value = names.both(value, schema);
    }
    if (!is_known) value = names.both(value, rule.others);
  }
  return value;
}

// Keys that are not fixed, as far as no class tells them apart.
TermId keys_of_all_classes(TermStore& store, const ObjectCell& cell, const std::vector<std::string>& fixed) {
  std::vector<TermId> conditions = {store.complement(store.literals({fixed.begin(), fixed.end()}))};
  if (cell.has_names) conditions.push_back(cell.names);
  for (const MemberRule& rule : cell.rules) conditions.push_back(store.complement(rule.doubtful));
  return store.all_of(std::move(conditions));
}

}  // namespace

bool is_open_by_default(const ObjectCell& cell) {
  const auto says_which = [](const MemberRule& rule) { return rule.has_others; };
  const auto names_some = [](const MemberRule& rule) { return rule.is_assertion; };
  return std::ranges::none_of(cell.rules, says_which) && std::ranges::any_of(cell.rules, names_some);
}

Result<std::vector<KeyClass>> key_classes(SchemaEvaluator& evaluator, const ObjectCell& cell,
                                          const std::vector<std::string>& fixed, bool closes_objects) {
  TermStore& store = evaluator.store();
  std::vector<TermId> patterns;
  for (const MemberRule& rule : cell.rules) {
    for (const auto& pattern : rule.patterns) {
      if (std::ranges::find(patterns, pattern.first) == patterns.end()) patterns.push_back(pattern.first);
    }
  }
  if (patterns.size() > kMaxKeyPatterns) {
    return make_error(ErrorKind::kUnmet, fmt::format("an object has {} patternProperties that may meet (at most {})",
                                                     patterns.size(), kMaxKeyPatterns));
  }
  std::optional<TermId> allowed;  // made for the first class that has a value
  const auto is_doubtful = [](const MemberRule& rule) { return rule.doubtful != kNothing; };
  const bool is_any = patterns.empty() && !cell.has_names && std::ranges::none_of(cell.rules, is_doubtful);
  const bool is_closed = closes_objects && is_open_by_default(cell);
  std::vector<KeyClass> classes;
  for (std::size_t matched = is_closed ? 1 : 0; matched < std::size_t{1} << patterns.size(); ++matched) {
    const SchemaName value = value_in_class(evaluator, cell, patterns, matched);
    if (value == kNoValue) continue;
    if (!allowed) allowed = keys_of_all_classes(store, cell, fixed);
    std::vector<TermId> parts = {*allowed};
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      parts.push_back((matched >> i & 1) != 0 ? patterns[i] : store.complement(patterns[i]));
    }
    const TermId keys = store.all_of(std::move(parts));
    if (!evaluator.derivatives().is_alive(keys)) continue;
    classes.push_back({.keys = keys, .value = value, .may_run_out = !is_any});
  }
  return classes;
}

}  // namespace kvasir::grammar
