#include "kv/blocks/eviction_order.h"

#include <algorithm>

#include "base/check.h"

namespace kvasir::kv {
namespace {

// In equal parts of the blocks that hold something.
constexpr double kFloorParts = 0.5;
constexpr double kShareParts = 2.0;

}  // namespace

EvictionOrder::EvictionOrder(std::int32_t num_blocks) : entries_(static_cast<std::size_t>(num_blocks)) {}

void EvictionOrder::own(CacheOwner owner, std::int32_t num_blocks) {
  const auto index = static_cast<std::size_t>(owner);
  if (index >= owners_.size()) owners_.resize(index + 1);
  owners_[index].num_blocks += num_blocks;
  num_owned_ += num_blocks;
}

double EvictionOrder::add(BlockId id, CacheOwner owner_id, double value, double at_least) {
  Owner& owner = owners_[static_cast<std::size_t>(owner_id)];
  Entry& entry = at(id);
  CHECK(entry.place < 0);
  entry = {.priority = std::max(age_ + value, at_least),
           .stamp = next_stamp_++,
           .owner = static_cast<std::int32_t>(owner_id)};
  owner.heap.push_back(id);
  settle(owner, owner.heap.size() - 1);
  ++size_;
  return entry.priority;
}

void EvictionOrder::remove(BlockId id) {
  Entry& entry = at(id);
  CHECK(entry.place >= 0);
  Owner& owner = owners_[static_cast<std::size_t>(entry.owner)];
  const auto place = static_cast<std::size_t>(entry.place);
  const BlockId last = owner.heap.back();
  owner.heap.pop_back();
  if (last != id) {
    put(owner, place, last);
    settle(owner, place);
  }
  entry.place = -1;
  --size_;
}

BlockId EvictionOrder::take_first() {
  const auto num_owners = std::ranges::count_if(owners_, [](const Owner& o) { return o.num_blocks > 0; });
  const double part = num_owned_ / static_cast<double>(std::max<std::ptrdiff_t>(1, num_owners));
  const Owner* giver = first_of_those_above(kShareParts * part);
  if (giver == nullptr) giver = first_of_those_above(kFloorParts * part);
  if (giver == nullptr) giver = first_of_those_above(0.0);
  if (giver == nullptr) return kHole;
  const BlockId first = giver->heap.front();
  age_ = std::max(age_, at(first).priority);
  return first;
}

// The owner with more blocks whose first block goes first; null when none can give one.
const EvictionOrder::Owner* EvictionOrder::first_of_those_above(double num_blocks) const {
  const Owner* best = nullptr;
  for (const Owner& owner : owners_) {
    if (owner.heap.empty() || owner.num_blocks <= num_blocks) continue;
    if (best == nullptr || goes_before(owner.heap.front(), best->heap.front())) best = &owner;
  }
  return best;
}

std::vector<BlockId> EvictionOrder::by_priority() const {
  std::vector<BlockId> ids;
  for (const Owner& owner : owners_) ids.insert(ids.end(), owner.heap.begin(), owner.heap.end());
  std::ranges::sort(ids, [this](BlockId a, BlockId b) { return goes_before(a, b); });
  return ids;
}

bool EvictionOrder::goes_before(BlockId a, BlockId b) const {
  const Entry &first = at(a), &second = at(b);
  return first.priority != second.priority ? first.priority < second.priority : first.stamp < second.stamp;
}

void EvictionOrder::put(Owner& owner, std::size_t place, BlockId id) {
  owner.heap[place] = id;
  at(id).place = static_cast<std::int32_t>(place);
}

// Moves what is at `place` up or down to where it belongs.
void EvictionOrder::settle(Owner& owner, std::size_t place) {
  const BlockId id = owner.heap[place];
  while (place > 0 && goes_before(id, owner.heap[(place - 1) / 2])) {
    put(owner, place, owner.heap[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= owner.heap.size()) break;
    if (child + 1 < owner.heap.size() && goes_before(owner.heap[child + 1], owner.heap[child])) ++child;
    if (!goes_before(owner.heap[child], id)) break;
    put(owner, place, owner.heap[child]);
    place = child;
  }
  put(owner, place, id);
}

}  // namespace kvasir::kv
