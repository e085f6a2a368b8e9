// Intersections and unions of sets of JSON values.
#pragma once

#include "grammar/regex/derivatives.h"
#include "grammar/regex/term_store.h"
#include "grammar/schema/cell_union.h"
#include "grammar/schema/cells.h"
#include "grammar/schema/schema_names.h"
#include "kvasir/result.h"

namespace kvasir::grammar {

// Thread safety: none.
class CellAlgebra {
 public:
  static constexpr std::size_t kMaxCells = 2000;
  static constexpr std::size_t kMaxWork = 100'000;  // pairs of cells that are intersected, all in all
  static constexpr std::size_t kPartsOfPair = 6;   // rules and keys of two objects that are compared: as one pair

  // All outlive this.
  CellAlgebra(TermStore& store, Derivatives& derivatives, SchemaNames& names)
      : store_(store), derivatives_(derivatives), names_(names) {}

  Cells any_value();
  // kUnmet: more than kMaxCells cells, or than kMaxWork pairs so far.
  Result<Cells> both(const Cells& a, const Cells& b);
  static Cells either(const Cells& a, const Cells& b);

  // Counts work that somebody does with cells: enough of it, and both() fails.
  void spend(std::size_t num_pairs) { work_ += num_pairs; }

  // What is not in a set, or less (is_narrowed). Requires: !cells.is_narrowed. kUnmet: as both().
  Result<Cells> complement(const Cells& cells);

 private:
  bool is_any_value(const Cells& cells) const;
  Status check_limits(const Cells& cells) const;
  std::vector<ArrayCell> complement(const ArrayCell& cell);
  std::vector<ObjectCell> complement(const ObjectCell& cell, bool& is_narrowed);
  void add_complement(const MemberRule& rule, std::vector<ObjectCell>& cells, bool& is_narrowed);
  void add_both(const StringCell& a, const StringCell& b, CellUnion& cells);
  void add_both(const ArrayCell& a, const ArrayCell& b, CellUnion& cells);
  void add_both(const ObjectCell& a, const ObjectCell& b, CellUnion& cells);

  TermStore& store_;
  Derivatives& derivatives_;
  SchemaNames& names_;
  std::size_t work_ = 0;
};

}  // namespace kvasir::grammar
