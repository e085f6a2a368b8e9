#include "grammar/schema/needed_objects.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/schema/inhabited.h"
#include "grammar/schema/key_classes.h"

namespace kvasir::grammar {
namespace {

template <typename T>
bool has_all(const std::vector<T>& all, const std::vector<T>& some) {
  return std::ranges::all_of(some, [&](const T& one) { return std::ranges::find(all, one) != all.end(); });
}

// A member that has to be there may be of a kind that has to be there.
void remove_implied(SchemaEvaluator& evaluator, ObjectCell& cell) {
  std::erase_if(cell.contains, [&](const Occurrence& wanted) {
    return std::ranges::any_of(cell.required, [&](const std::string& key) {
      return evaluator.has_text(wanted.keys, key) &&
             (wanted.value == kAnyValue || wanted.value == member_value(evaluator, cell, key));
    });
  });
}

// A cell with what tells quickly that it is not within another one.
struct Case {
  const ObjectCell* cell = nullptr;
  std::size_t place = 0;
  std::size_t num_conditions = 0;
  std::uint64_t conditions = 0;  // a bit for some of them
};

Case case_of(const ObjectCell& cell, std::size_t place) {
  Case one = {.cell = &cell, .place = place};
  const auto add = [&](std::size_t hash) {
    ++one.num_conditions;
    one.conditions |= std::uint64_t{1} << (hash % 64);
  };
  for (const SharedRule& rule : cell.rules) add(rule.hash());
  for (const std::string& key : cell.required) add(std::hash<std::string>()(key));
  for (const std::string& key : cell.absent) add(std::hash<std::string>()(key) / 64);
  one.num_conditions += cell.contains.size() + (cell.has_names ? 1 : 0);
  return one;
}

// Every value of the inner cell is one of the outer.
bool is_within(const Case& inner_case, const Case& outer_case) {
  if ((outer_case.conditions & ~inner_case.conditions) != 0) return false;
  const ObjectCell& inner = *inner_case.cell;
  const ObjectCell& outer = *outer_case.cell;
  if (outer.has_names && (!inner.has_names || inner.names != outer.names)) return false;
  return outer.contains.empty() && outer.min_members <= inner.min_members &&
         outer.max_members >= inner.max_members && has_all(inner.rules, outer.rules) &&
         has_all(inner.required, outer.required) && has_all(inner.absent, outer.absent);
}

// Keys in the order in which they are written.
std::vector<std::string_view> written_keys(const ObjectCell& cell, const std::vector<std::string>& absent) {
  std::vector<std::string_view> keys;
  const auto add = [&](const std::string& key) {
    if (std::ranges::find(absent, key) == absent.end() && std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  for (const MemberRule& rule : cell.rules) {
    for (const auto& property : rule.properties) add(property.first);
  }
  for (const std::string& key : cell.required) add(key);
  return keys;
}

// The outer cell names its keys before all others, in an order of its own. Requires: is_within().
bool is_written_alike(const ObjectCell& inner, const ObjectCell& outer) {
  const std::vector<std::string_view> keys = written_keys(inner, inner.absent);
  const std::vector<std::string_view> before = written_keys(outer, inner.absent);
  return before.size() <= keys.size() && std::equal(before.begin(), before.end(), keys.begin());
}

}  // namespace

std::vector<ObjectCell> needed_objects(SchemaEvaluator& evaluator, std::vector<ObjectCell> cells,
                                       bool closes_objects) {
  if (cells.size() < 2) return cells;
  std::vector<Case> cases;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    remove_implied(evaluator, cells[i]);
    if (is_inhabited(evaluator, {.objects = {cells[i]}})) cases.push_back(case_of(cells[i], i));
  }
  std::ranges::stable_sort(cases, {}, &Case::num_conditions);
  std::vector<Case> needed;
  for (const Case& one : cases) {
    const auto covers = [&](const Case& outer) {
      return is_within(one, outer) && (!closes_objects || !is_open_by_default(*outer.cell)) &&
             is_written_alike(*one.cell, *outer.cell);
    };
    if (std::ranges::none_of(needed, covers)) needed.push_back(one);
  }
  std::ranges::sort(needed, {}, &Case::place);
  std::vector<ObjectCell> result;
  for (const Case& one : needed) result.push_back(std::move(cells[one.place]));
  return result;
}

}  // namespace kvasir::grammar
