#include "grammar/schema/cell_algebra.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kvasir::grammar {
namespace {

template <class T>
void append_new(std::vector<T>& to, const std::vector<T>& from) {
  for (const T& value : from) {
    if (std::ranges::find(to, value) == to.end()) to.push_back(value);
  }
}

bool is_any(const ArrayCell& cell) { return cell == ArrayCell{}; }
bool is_any(const ObjectCell& cell) { return cell == ObjectCell{}; }

using TextSet = std::unordered_set<std::string_view>;

bool share_a_text(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.empty() || b.empty()) return false;
  const TextSet texts(a.begin(), a.end());
  return std::ranges::any_of(b, [&](const std::string& text) { return texts.contains(text); });
}

void append_new_texts(std::vector<std::string>& to, const std::vector<std::string>& from) {
  if (from.empty()) return;
  const std::vector<std::string> before = to;
  const TextSet known(before.begin(), before.end());
  for (const std::string& text : from) {
    if (!known.contains(text)) to.push_back(text);
  }
}

}  // namespace

Cells CellAlgebra::any_value() {
  return {.has_null = true,
          .has_true = true,
          .has_false = true,
          .numbers = {NumberSet{}},
          .strings = {StringCell{.texts = store_.any_text(), .perhaps = store_.any_text()}},
          .arrays = {ArrayCell{}},
          .objects = {ObjectCell{}}};
}

void CellAlgebra::add_both(const StringCell& a, const StringCell& b, CellUnion& cells) {
  const TermId texts = store_.all_of({a.texts, b.texts});
  const bool is_exact = a.texts == a.perhaps && b.texts == b.perhaps;
  const TermId perhaps = is_exact ? texts : store_.all_of({a.perhaps, b.perhaps});
  if (!derivatives_.is_alive(texts) && (is_exact || !derivatives_.is_alive(perhaps))) return;
  cells.add(StringCell{.texts = texts, .perhaps = perhaps, .is_free = a.is_free && b.is_free});
}

void CellAlgebra::add_both(const ArrayCell& a, const ArrayCell& b, CellUnion& cells) {
  if (is_any(a) || is_any(b)) return cells.add(is_any(a) ? b : a);
  ArrayCell cell = {.prefix = {},
                    .rest = names_.both(a.rest, b.rest),
                    .num_evaluated = std::max(a.num_evaluated, b.num_evaluated),
                    .min_items = std::max(a.min_items, b.min_items),
                    .max_items = std::min(a.max_items, b.max_items),
                    .contains = a.contains,
                    .is_unique = a.is_unique || b.is_unique};
  for (std::size_t i = 0; i < std::max(a.prefix.size(), b.prefix.size()); ++i) {
    const auto element = [i](const ArrayCell& from) { return i < from.prefix.size() ? from.prefix[i] : from.rest; };
    cell.prefix.push_back(names_.both(element(a), element(b)));
  }
  append_new(cell.contains, b.contains);
  if (cell.min_items <= cell.max_items) cells.add(std::move(cell));
}

void CellAlgebra::add_both(const ObjectCell& a, const ObjectCell& b, CellUnion& cells) {
  if (is_any(a) || is_any(b)) return cells.add(is_any(a) ? b : a);
  spend((a.rules.size() + a.required.size()) * (b.rules.size() + b.required.size()) / kPartsOfPair);
  if (share_a_text(a.required, b.absent) || share_a_text(b.required, a.absent)) return;
  ObjectCell cell = a;
  append_new(cell.rules, b.rules);
  append_new_texts(cell.required, b.required);
  append_new_texts(cell.absent, b.absent);
  append_new(cell.contains, b.contains);
  if (b.has_names) {
    cell.names = cell.has_names ? store_.all_of({cell.names, b.names}) : b.names;
    cell.has_names = true;
  }
  cell.min_members = std::max(a.min_members, b.min_members);
  cell.max_members = std::min(a.max_members, b.max_members);
  if (cell.min_members > cell.max_members || cell.required.size() > cell.max_members) return;
  cells.add(std::move(cell));
}

Status CellAlgebra::check_limits(const Cells& cells) const {
  if (work_ > kMaxWork) {
    return make_error(ErrorKind::kUnmet, fmt::format("a schema makes more than {} pairs of cases", kMaxWork));
  }
  if (cells.count() > kMaxCells) {
    return make_error(ErrorKind::kUnmet, fmt::format("a schema makes more than {} cases", kMaxCells));
  }
  return {};
}

bool CellAlgebra::is_any_value(const Cells& cells) const {
  const bool has_words = cells.has_null && cells.has_true && cells.has_false && !cells.is_narrowed;
  if (!has_words || cells.numbers.size() != 1 || cells.strings.size() != 1 || cells.arrays.size() != 1 ||
      cells.objects.size() != 1) {
    return false;
  }
  return cells.strings[0].is_free && cells.strings[0].texts == store_.any_text() && cells.numbers[0] == NumberSet{} &&
         is_any(cells.arrays[0]) && is_any(cells.objects[0]);
}

Result<Cells> CellAlgebra::both(const Cells& a, const Cells& b) {
  if (is_any_value(a)) return b;
  if (is_any_value(b)) return a;
  CellUnion result({.has_null = a.has_null && b.has_null,
                    .has_true = a.has_true && b.has_true,
                    .has_false = a.has_false && b.has_false,
                    .is_narrowed = a.is_narrowed || b.is_narrowed});
  spend(a.numbers.size() * b.numbers.size() + a.strings.size() * b.strings.size() + a.arrays.size() * b.arrays.size() +
        a.objects.size() * b.objects.size());
  KVASIR_CHECKED(check_limits(result.cells()));
  for (const NumberSet& x : a.numbers) {
    for (const NumberSet& y : b.numbers) {
      NumberSet set = intersected(x, y);
      if (!is_empty(set)) result.add(std::move(set));
    }
    KVASIR_CHECKED(check_limits(result.cells()));
  }
  for (const StringCell& x : a.strings) {
    for (const StringCell& y : b.strings) add_both(x, y, result);
    KVASIR_CHECKED(check_limits(result.cells()));
  }
  for (const ArrayCell& x : a.arrays) {
    for (const ArrayCell& y : b.arrays) add_both(x, y, result);
    KVASIR_CHECKED(check_limits(result.cells()));
  }
  for (const ObjectCell& x : a.objects) {
    for (const ObjectCell& y : b.objects) add_both(x, y, result);
    KVASIR_CHECKED(check_limits(result.cells()));
  }
  return result.take();
}

Cells CellAlgebra::either(const Cells& a, const Cells& b) {
  CellUnion result(a);
  result.add(b);
  return result.take();
}

}  // namespace kvasir::grammar
