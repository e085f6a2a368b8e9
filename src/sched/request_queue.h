// The sequences that wait for a seat, in the order they will get one.
#pragma once

#include <set>

#include "sched/sequence.h"

namespace kvasir::sched {

// First come, first served within a class. Order is by arrival, not by insertion, so a preempted sequence
// returns to the head of its class.
//
// Thread safety: none. Borrows the sequences; a member's running_class and id must not change.
class RequestQueue {
 public:
  using Order = std::set<Sequence*, RunsBefore>;

  void push(Sequence* sequence) { order_.insert(sequence); }
  void remove(Sequence* sequence) { order_.erase(sequence); }
  bool empty() const { return order_.empty(); }
  std::size_t size() const { return order_.size(); }
  Order::const_iterator begin() const { return order_.begin(); }
  Order::const_iterator end() const { return order_.end(); }

 private:
  Order order_;
};

}  // namespace kvasir::sched
