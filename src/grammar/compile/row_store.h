// The places between terminals of a grammar, as Earley's algorithm has them, each made once.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/regex/id_table.h"
#include "grammar/ir/grammar.h"
#include "grammar/regex/byte_states.h"
#include "kvasir/ids.h"

namespace kvasir::grammar {

using RowId = std::uint32_t;
inline constexpr RowId kNoRow = 0xFFFFFFFF;

// A rule on its way.
struct Item {
  NodeId node = 0;
  std::uint32_t count = 0;  // rounds of a loop that are over
  RowId origin = kNoRow;    // where the rule began; kNoRow: with the grammar
  RuleId rule = 0;          // what is complete at the end, and what the origin waits for

  friend auto operator<=>(const Item&, const Item&) = default;
};

// Recognises (Earley, "An efficient context-free parsing algorithm", 1970; calls in tail position as Leo has them,
// 1991). A row is found by its kernel, the items behind a terminal. Origins are rows and no positions, so that the
// rows behind the first and the last element of a list are one.
//
// A store holds at most `max_items`. Beyond that it is exhausted for good, and its answers mean nothing.
//
// Thread safety: none.
class RowStore {
 public:
  // Both outlive this.
  RowStore(const Grammar& grammar, ByteStates& states, std::size_t max_items = 1'000'000)
      : grammar_(grammar), states_(states), max_items_(max_items), starts_(grammar.terminals.size(), kUnknownState) {}

  // What a row waits for.
  struct Wanted {
    TerminalId terminal = 0;
    ByteStateId state = kDeadState;  // before its first byte
  };

  RowId start();
  // Behind a terminal that the row waits for.
  RowId advance(RowId row, TerminalId terminal);
  // Behind a token; kNoRow when the row waits for no such token.
  RowId advance_token(RowId row, TokenId token);
  // The row that goes on as any of these do. Requires: at least one.
  RowId join(std::span<const RowId> rows);

  const TextMark& mark(TerminalId terminal) const { return grammar_.terminals[terminal].mark; }
  std::span<const Wanted> wanted(RowId row) const { return rows_[row].wanted; }
  std::span<const TokenId> tokens(RowId row) const { return rows_[row].tokens; }  // ascending
  // The grammar's text may end here.
  bool is_accepting(RowId row) const { return rows_[row].is_accepting; }

  bool is_exhausted() const { return is_exhausted_; }
  std::size_t num_rows() const { return rows_.size(); }
  std::size_t num_items() const { return num_items_; }
  std::size_t size_bytes() const {
    return row_bytes_ + found_.size_bytes() + advanced_.size() * kMapEntryBytes + starts_.size() * sizeof(ByteStateId);
  }

 private:
  struct Row {
    struct Caller {  // an item that waits for a rule
      RuleId rule = 0;
      std::uint32_t item = 0;
      friend auto operator<=>(const Caller&, const Caller&) = default;
    };
    std::size_t size_bytes() const {
      return sizeof(*this) + (kernel.size() + items.size()) * sizeof(Item) + callers.size() * sizeof(Caller) +
             wanted.size() * sizeof(Wanted) + tokens.size() * sizeof(TokenId);
    }

    std::vector<Item> kernel;
    std::vector<Item> items;  // with everything that is predicted or complete
    std::vector<Caller> callers;  // by rule
    std::vector<Wanted> wanted;
    std::vector<TokenId> tokens;
    bool is_accepting = false;
  };

  RowId intern(std::vector<Item> kernel);
  Row closed(std::vector<Item> kernel, RowId id);
  ByteStateId start_of(TerminalId terminal);
  std::vector<Item> behind(RowId row, Edge::Kind kind, std::uint32_t value) const;
  const Loop* loop_at(NodeId node) const;

  friend class RowCloser;

  const Grammar& grammar_;
  ByteStates& states_;
  std::size_t max_items_;
  std::size_t num_items_ = 0;
  std::size_t row_bytes_ = 0;
  static constexpr std::size_t kMapEntryBytes = 40;
  bool is_exhausted_ = false;
  std::vector<Row> rows_;
  IdTable found_;
  std::unordered_map<std::uint64_t, RowId> advanced_;  // by row << 32 | terminal
  static constexpr ByteStateId kUnknownState = 0xFFFFFFFF;
  std::vector<ByteStateId> starts_;  // by terminal
};

}  // namespace kvasir::grammar
