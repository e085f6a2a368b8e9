#include "grammar/schema/cell_union.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "grammar/regex/fingerprint.h"

namespace kvasir::grammar {
namespace {

constexpr std::size_t kMaxScanned = 8;

void add_number(Fingerprint& hash, const Decimal& number) {
  hash.add(number.is_negative() ? 1 : 0);
  hash.add(std::string_view(number.whole()));
  hash.add(std::string_view(number.fraction()));
}

void add_bound(Fingerprint& hash, const std::optional<Bound>& bound) {
  hash.add(!bound ? 0 : bound->is_included ? 1 : 2);
  if (bound) add_number(hash, bound->value);
}

void add_occurrences(Fingerprint& hash, const std::vector<Occurrence>& occurrences) {
  for (const Occurrence& one : occurrences) {
    hash.add(std::uint64_t{one.value} << 32 | one.keys);
    hash.add(std::uint64_t{one.min} << 32 | one.max);
  }
}

std::uint64_t hash_of(const NumberSet& set) {
  Fingerprint hash(set.multiple_of.size());
  add_bound(hash, set.least);
  add_bound(hash, set.greatest);
  for (const Decimal& divisor : set.multiple_of) add_number(hash, divisor);
  return hash.value().first;
}

std::uint64_t hash_of(const StringCell& cell) {
  Fingerprint hash(cell.is_free ? 1 : 0);
  hash.add(std::uint64_t{cell.texts} << 32 | cell.perhaps);
  return hash.value().first;
}

std::uint64_t hash_of(const ArrayCell& cell) {
  Fingerprint hash(cell.rest);
  for (const SchemaName name : cell.prefix) hash.add(name);
  hash.add(std::uint64_t{cell.min_items} << 32 | cell.max_items);
  add_occurrences(hash, cell.contains);
  return hash.value().first;
}

std::uint64_t hash_of(const ObjectCell& cell) {
  Fingerprint hash(cell.names);
  for (const SharedRule& rule : cell.rules) hash.add(rule.hash());
  for (const std::string& key : cell.required) hash.add(std::string_view(key));
  hash.add(cell.required.size());
  for (const std::string& key : cell.absent) hash.add(std::string_view(key));
  hash.add(std::uint64_t{cell.min_members} << 32 | cell.max_members);
  add_occurrences(hash, cell.contains);
  return hash.value().first;
}

}  // namespace

std::uint64_t hash_of(const Cells& cells) {
  Fingerprint hash((cells.has_null ? 1U : 0U) + (cells.has_true ? 2U : 0U) + (cells.has_false ? 4U : 0U));
  const auto add = [&](const auto& list) {
    for (const auto& cell : list) hash.add(hash_of(cell));
    hash.add(list.size());
  };
  add(cells.numbers);
  add(cells.strings);
  add(cells.arrays);
  add(cells.objects);
  return hash.value().first;
}

template <typename Cell>
void CellUnion::add_new(Cell cell, std::vector<Cell>& cells, IdTable& places) {
  if (cells.size() < kMaxScanned) {
    if (std::ranges::find(cells, cell) == cells.end()) cells.push_back(std::move(cell));
    if (cells.size() < kMaxScanned) return;
    for (std::uint32_t i = 0; i < cells.size(); ++i) places.insert(hash_of(cells[i]), i);
    return;
  }
  const std::uint64_t hash = hash_of(cell);
  if (places.find(hash, [&](std::uint32_t i) { return cells[i] == cell; }) != IdTable::kNone) return;
  places.insert(hash, static_cast<std::uint32_t>(cells.size()));
  cells.push_back(std::move(cell));
}

void CellUnion::add(Cells cells) {
  cells_.has_null = cells_.has_null || cells.has_null;
  cells_.has_true = cells_.has_true || cells.has_true;
  cells_.has_false = cells_.has_false || cells.has_false;
  cells_.is_narrowed = cells_.is_narrowed || cells.is_narrowed;
  for (NumberSet& set : cells.numbers) add(std::move(set));
  for (const StringCell& cell : cells.strings) add(cell);
  for (ArrayCell& cell : cells.arrays) add(std::move(cell));
  for (ObjectCell& cell : cells.objects) add(std::move(cell));
}

}  // namespace kvasir::grammar
