#include "sim/fake_disk.h"

#include <iterator>

namespace kvasir::sim {
namespace {

constexpr std::int32_t kFailurePercent = 5;

}  // namespace

bool FakeDisk::write(kv::KvCellRef cell, kv::KvCellRef copy, std::int32_t head_dim) {
  const auto stamp = memory_->stamp_of(cell, head_dim);
  if (!stamp) fault_ = "a copy is made of a cell that is not whole";
  if (cell.format() != copy.format() && !kv::is_coarser(copy.format(), cell.format()))
    fault_ = "a copy is finer than its cell";
  const std::int64_t end = copy.offset() + kv::cell_bytes(copy.format(), head_dim);
  if (end > capacity_bytes_) fault_ = "a copy lies behind the end of the file";
  // An older copy in that place is overwritten, whole or in part.
  auto overlapped = copies_.lower_bound(copy.offset());
  if (overlapped != copies_.begin() && std::prev(overlapped)->second.end > copy.offset()) --overlapped;
  while (overlapped != copies_.end() && overlapped->first < end) overlapped = copies_.erase(overlapped);
  if (random_.percent(kFailurePercent)) return false;
  copies_[copy.offset()] = {end, copy.format(), stamp.value_or(0)};
  return true;
}

bool FakeDisk::read(kv::KvCellRef copy, kv::KvCellRef cell, std::int32_t head_dim) {
  const auto found = copies_.find(copy.offset());
  if (found == copies_.end() || found->second.format != copy.format() || cell.format() != copy.format()) {
    fault_ = "a copy is read that was overwritten";
    return false;
  }
  const bool fails = random_.percent(kFailurePercent);
  memory_->fill(cell, head_dim, fails ? 0 : found->second.stamp);
  return !fails;
}

}  // namespace kvasir::sim
