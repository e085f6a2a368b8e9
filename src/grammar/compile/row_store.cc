#include "grammar/compile/row_store.h"

#include <algorithm>
#include <set>
#include <utility>

namespace kvasir::grammar {

// Adds to the items of a new row what they predict and complete.
class RowCloser {
 public:
  RowCloser(RowStore& store, RowId self) : store_(store), self_(self) {}

  void add(const Item& item) {
    if (seen_.insert(item).second) items_.push_back(item);
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
    if (edge != nullptr && store_.is_only_end(edge->target)) {
      add({start, 0, item.origin, item.rule});
      return;
    }
    add({start, 0, self_, rule});
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
      empty_rules_.push_back(item.rule);
      for (std::size_t i = 0; i < items_.size(); ++i) step_over(Item(items_[i]), item.rule);
    } else {
      const std::vector<Item>& waiting = store_.rows_[item.origin].items;
      for (const Item& caller : waiting) step_over(caller, item.rule);
    }
  }

  RowStore& store_;
  RowId self_;
  std::vector<Item> items_;
  std::set<Item> seen_;
  std::vector<RuleId> empty_rules_;  // complete where they began
  bool is_accepting_ = false;
};

const Loop* RowStore::loop_at(NodeId node) const {
  const std::int32_t place = grammar_.loop_of[node];
  return place < 0 ? nullptr : &grammar_.loops[static_cast<std::size_t>(place)];
}

bool RowStore::is_only_end(NodeId node) const {
  return grammar_.nodes[node].is_final && grammar_.nodes[node].edges.empty() && grammar_.loop_of[node] < 0;
}

RowId RowStore::intern(std::vector<Item> kernel) {
  std::ranges::sort(kernel);
  kernel.erase(std::ranges::unique(kernel).begin(), kernel.end());
  if (const auto found = found_.find(kernel); found != found_.end()) return found->second;
  const auto id = static_cast<RowId>(rows_.size());
  RowCloser closer(*this, id);
  for (const Item& item : kernel) closer.add(item);
  closer.close();
  Row row = {.kernel = kernel,
             .items = closer.take_items(),
             .wanted = {},
             .tokens = {},
             .is_accepting = closer.is_accepting()};
  std::vector<TerminalId> terminals;
  for (const Item& item : row.items) {
    for (const Edge& edge : grammar_.nodes[item.node].edges) {
      if (edge.kind == Edge::Kind::kTerminal) terminals.push_back(edge.value);
      if (edge.kind == Edge::Kind::kToken) row.tokens.push_back(static_cast<TokenId>(edge.value));
    }
  }
  std::ranges::sort(terminals);
  terminals.erase(std::ranges::unique(terminals).begin(), terminals.end());
  for (const TerminalId terminal : terminals) {
    row.wanted.push_back({terminal, states_.start(grammar_.terminals[terminal])});
  }
  std::ranges::sort(row.tokens);
  row.tokens.erase(std::ranges::unique(row.tokens).begin(), row.tokens.end());
  num_items_ += row.items.size();
  if (num_items_ > max_items_) is_exhausted_ = true;
  rows_.push_back(std::move(row));
  found_.emplace(std::move(kernel), id);
  return id;
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
  const auto key = std::pair(row, terminal);
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
