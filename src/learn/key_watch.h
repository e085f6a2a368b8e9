// Statistics of the keys that a model computes, for cells with keys in principal components (kv/cells/key_basis.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/cells/key_bases.h"
#include "kv/policy/policy.h"

namespace kvasir::learn {

// A policy that does nothing: it reads the keys of each block that becomes full, but for a sequence's first. Keys are turned
// back by the position of their block's first token. The cells are f16 or f32. One sequence at a time, each from its
// beginning. Thread safety: none; plan() is const for its callers alone.
class KeyWatch final : public kv::KvPolicy {
 public:
  // Gives the first bytes of a cell.
  using ReadCell = std::function<void(kv::KvCellRef cell, std::span<std::byte> bytes)>;
  // `turnings`: by layer group; groups without one are left out.
  KeyWatch(ReadCell read_cell, std::vector<std::optional<kv::KeyTurning>> turnings);

  std::string_view name() const override { return "key-watch"; }
  bool has_budget() const override { return false; }
  void plan(const kv::PolicyView& view, std::vector<kv::CellAction>& actions) const override;

  // By cell of the group; empty where none was seen, or too few keys for their components to be known.
  std::vector<kv::KeyStatistics> statistics_of(std::int32_t group) const;

 private:
  struct Sums {
    std::int64_t num_keys = 0;
    std::vector<double> keys, products;  // [head_dim], [head_dim][head_dim], of which the half from the diagonal on is kept
  };
  struct Group {
    std::int32_t head_dim = 0;
    std::int32_t num_seen_blocks = 0;  // of the sequence
    std::vector<Sums> cells;
  };

  void see(const kv::PolicyView& view, std::int32_t block, Group& group) const;
  static kv::KeyStatistics statistics_of(const Sums& sums, std::int32_t head_dim);

  const ReadCell read_cell_;
  const std::vector<std::optional<kv::KeyTurning>> turnings_;
  mutable std::map<std::int32_t, Group> groups_;
};

}  // namespace kvasir::learn
