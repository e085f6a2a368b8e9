#include "grammar/compile/row_store.h"

#include <algorithm>
#include <utility>

namespace kvasir::grammar {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

std::uint64_t hash_of(const Item& item) {
  return mixed(mixed(std::uint64_t{item.node} << 32 | item.count, std::uint64_t{item.origin} << 32 | item.rule),
               0x94D049BB133111EB);
}

std::uint64_t hash_of(const std::vector<Item>& items) {
  std::uint64_t hash = items.size();
  for (const Item& item : items) hash = mixed(hash, hash_of(item));
  return mixed(hash, 1);
}

}  // namespace

// Adds to the items of a new row what they predict and complete.
class RowCloser {
 public:
  RowCloser(RowStore& store, RowId self) : store_(store), self_(self) {}

  void add(const Item& item) {
    if (items_.size() <= kMaxScanned) {
      if (std::ranges::find(items_, item) != items_.end()) return;
      items_.push_back(item);
      if (items_.size() > kMaxScanned) {
        for (std::uint32_t i = 0; i < items_.size(); ++i) seen_.insert(hash_of(items_[i]), i);
      }
      return;
    }
    const std::uint64_t hash = hash_of(item);
    if (seen_.find(hash, [&](std::uint32_t i) { return items_[i] == item; }) != IdTable::kNone) return;
    seen_.insert(hash, static_cast<std::uint32_t>(items_.size()));
    items_.push_back(item);
  }

  void close() {
    for (std::size_t i = 0; i < items_.size(); ++i) visit(Item(items_[i]));
  }

  bool is_accepting() const { return is_accepting_; }
  std::vector<Item> take_items() { return std::move(items_); }

 private:
  void visit(const Item& item) {
    const Node& node = store_.grammar_.nodes[item.node];
    if (const Loop* loop = store_.loop_at(item.node)) {
      if (item.count < loop->max) predict(item, loop->rule, nullptr);
      if (item.count >= loop->min) add({loop->exit, 0, item.origin, item.rule});
    }
    for (const Edge& edge : node.edges) {
      if (edge.kind == Edge::Kind::kSkip) add({edge.target, 0, item.origin, item.rule});
      if (edge.kind == Edge::Kind::kRule) predict(item, edge.value, &edge);
    }
    if (node.is_final) complete(item);
  }

  void predict(const Item& item, RuleId rule, const Edge* edge) {
    const NodeId start = store_.grammar_.rules[rule].start;
    if (edge != nullptr && edge->is_tail) {
      add({start, 0, item.origin, item.rule});
      return;
    }
    add({start, 0, self_, rule});
    waiting_.emplace_back(rule, item);
    if (std::ranges::find(empty_rules_, rule) != empty_rules_.end()) step_over(item, rule);
  }

  // The item behind a rule that it waits for.
  void step_over(const Item& item, RuleId rule) {
    if (const Loop* loop = store_.loop_at(item.node); loop != nullptr && loop->rule == rule) {
      const bool is_saturated = loop->max == kUnbounded && item.count >= loop->min;
      if (item.count < loop->max) add({item.node, is_saturated ? item.count : item.count + 1, item.origin, item.rule});
    }
    for (const Edge& edge : store_.grammar_.nodes[item.node].edges) {
      if (edge.kind == Edge::Kind::kRule && edge.value == rule) add({edge.target, 0, item.origin, item.rule});
    }
  }

  void complete(const Item& item) {
    if (item.origin == kNoRow) {
      is_accepting_ = true;
    } else if (item.origin == self_) {
      if (std::ranges::find(empty_rules_, item.rule) != empty_rules_.end()) return;
      empty_rules_.push_back(item.rule);
      for (const auto& [rule, waiting] : waiting_) {
        if (rule == item.rule) step_over(waiting, rule);
      }
    } else if (is_first_end(item)) {
      const Row& origin = store_.rows_[item.origin];
      for (const auto& [rule, place] : std::ranges::equal_range(origin.callers, item.rule, {}, &Row::Caller::rule)) {
        step_over(origin.items[place], item.rule);
      }
    }
  }

  // A rule that began at a row ends here once, in however many ways.
  bool is_first_end(const Item& item) {
    const std::pair<RowId, RuleId> key = {item.origin, item.rule};
    const std::uint64_t hash = mixed(std::uint64_t{item.origin} << 32 | item.rule, 1);
    if (found_ends_.find(hash, [&](std::uint32_t place) { return ends_[place] == key; }) != IdTable::kNone) return false;
    found_ends_.insert(hash, static_cast<std::uint32_t>(ends_.size()));
    ends_.push_back(key);
    return true;
  }

  using Row = RowStore::Row;

  RowStore& store_;
  RowId self_;
  std::vector<Item> items_;
  static constexpr std::size_t kMaxScanned = 24;
  IdTable seen_;  // places in items_, once there are many
  std::vector<std::pair<RuleId, Item>> waiting_;  // items that were visited, by the rules that they wait for
  std::vector<RuleId> empty_rules_;               // complete where they began
  std::vector<std::pair<RowId, RuleId>> ends_;  // rules from other rows that are complete
  IdTable found_ends_;
  bool is_accepting_ = false;
};

const Loop* RowStore::loop_at(NodeId node) const {
  const std::int32_t place = grammar_.loop_of[node];
  return place < 0 ? nullptr : &grammar_.loops[static_cast<std::size_t>(place)];
}

ByteStateId RowStore::start_of(TerminalId terminal) {
  if (starts_[terminal] == kUnknownState) starts_[terminal] = states_.start(grammar_.terminals[terminal]);
  return starts_[terminal];
}

RowId RowStore::intern(std::vector<Item> kernel) {
  std::ranges::sort(kernel);
  kernel.erase(std::ranges::unique(kernel).begin(), kernel.end());
  const std::uint64_t hash = hash_of(kernel);
  const RowId found = found_.find(hash, [&](RowId row) { return rows_[row].kernel == kernel; });
  if (found != IdTable::kNone) return found;
  const auto id = static_cast<RowId>(rows_.size());
  Row row = closed(std::move(kernel), id);
  num_items_ += row.items.size();
  row_bytes_ += row.size_bytes();
  if (num_items_ > max_items_) is_exhausted_ = true;
  rows_.push_back(std::move(row));
  found_.insert(hash, id);
  return id;
}

RowStore::Row RowStore::closed(std::vector<Item> kernel, RowId id) {
  RowCloser closer(*this, id);
  for (const Item& item : kernel) closer.add(item);
  closer.close();
  Row row = {.kernel = std::move(kernel),
             .items = closer.take_items(),
             .callers = {},
             .wanted = {},
             .tokens = {},
             .is_accepting = closer.is_accepting()};
  std::vector<TerminalId> terminals;
  for (std::uint32_t place = 0; place < row.items.size(); ++place) {
    const NodeId node = row.items[place].node;
    if (const Loop* loop = loop_at(node)) row.callers.push_back({loop->rule, place});
    for (const Edge& edge : grammar_.nodes[node].edges) {
      if (edge.kind == Edge::Kind::kTerminal) terminals.push_back(edge.value);
      if (edge.kind == Edge::Kind::kToken) row.tokens.push_back(static_cast<TokenId>(edge.value));
      if (edge.kind == Edge::Kind::kRule) row.callers.push_back({edge.value, place});
    }
  }
  std::ranges::sort(row.callers);
  row.callers.erase(std::ranges::unique(row.callers).begin(), row.callers.end());
  std::ranges::sort(terminals);
  terminals.erase(std::ranges::unique(terminals).begin(), terminals.end());
  row.wanted.reserve(terminals.size());
  for (const TerminalId terminal : terminals) row.wanted.push_back({terminal, start_of(terminal)});
  std::ranges::sort(row.tokens);
  row.tokens.erase(std::ranges::unique(row.tokens).begin(), row.tokens.end());
  return row;
}

std::vector<Item> RowStore::behind(RowId row, Edge::Kind kind, std::uint32_t value) const {
  std::vector<Item> kernel;
  for (const Item& item : rows_[row].items) {
    for (const Edge& edge : grammar_.nodes[item.node].edges) {
      if (edge.kind == kind && edge.value == value) kernel.push_back({edge.target, 0, item.origin, item.rule});
    }
  }
  return kernel;
}

RowId RowStore::start() {
  return intern({{grammar_.rules[grammar_.start].start, 0, kNoRow, grammar_.start}});
}

RowId RowStore::advance(RowId row, TerminalId terminal) {
  const std::uint64_t key = std::uint64_t{row} << 32 | terminal;
  if (const auto found = advanced_.find(key); found != advanced_.end()) return found->second;
  const RowId next = intern(behind(row, Edge::Kind::kTerminal, terminal));
  advanced_.emplace(key, next);
  return next;
}

RowId RowStore::advance_token(RowId row, TokenId token) {
  if (!std::ranges::binary_search(rows_[row].tokens, token)) return kNoRow;
  return intern(behind(row, Edge::Kind::kToken, static_cast<std::uint32_t>(token)));
}

RowId RowStore::join(std::span<const RowId> rows) {
  if (rows.size() == 1) return rows[0];
  std::vector<Item> kernel;
  for (const RowId row : rows) {
    kernel.insert(kernel.end(), rows_[row].kernel.begin(), rows_[row].kernel.end());
  }
  return intern(std::move(kernel));
}

}  // namespace kvasir::grammar
