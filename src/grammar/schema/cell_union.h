// A union of JSON values on its way.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "grammar/regex/id_table.h"
#include "grammar/schema/cells.h"

namespace kvasir::grammar {

// Equal sets have the same hash.
std::uint64_t hash_of(const Cells& cells);

// Cells, each once; equal ones are told apart by hash.
//
// Thread safety: none.
class CellUnion {
 public:
  CellUnion() = default;
  explicit CellUnion(const Cells& first) { add(first); }

  void add(Cells cells);
  void add(NumberSet set) { add_new(std::move(set), cells_.numbers, numbers_); }
  void add(StringCell cell) { add_new(std::move(cell), cells_.strings, strings_); }
  void add(ArrayCell cell) { add_new(std::move(cell), cells_.arrays, arrays_); }
  void add(ObjectCell cell) { add_new(std::move(cell), cells_.objects, objects_); }

  const Cells& cells() const { return cells_; }
  Cells take() { return std::move(cells_); }

 private:
  template <typename Cell>
  static void add_new(Cell cell, std::vector<Cell>& cells, IdTable& places);

  Cells cells_;
  IdTable numbers_;  // places in cells_, once there are many
  IdTable strings_;
  IdTable arrays_;
  IdTable objects_;
};

}  // namespace kvasir::grammar
