#include "backend/gpu/row_flags.h"

#include <algorithm>

namespace kvasir::backend {

void RowFlags::begin_step() {
  page_ = 0;
  num_in_page_ = 0;
  num_uses_ = 0;
}

RowFlags::Use& RowFlags::next_use() {
  if (num_uses_ == uses_.size()) uses_.emplace_back();
  Use& use = uses_[num_uses_++];
  use.planned_rows.clear();
  return use;
}

std::uint8_t* RowFlags::take_flags(Use& use) {
  const std::int64_t count = std::ssize(use.planned_rows) * use.per_row;
  if (num_in_page_ + count > kFlagsPerPage) {
    ++page_;
    num_in_page_ = 0;
  }
  if (page_ == pages_.size()) pages_.push_back(std::make_unique<DeviceArray<std::uint8_t>>(device_));
  use.flags = pages_[page_]->resize(std::max(count, kFlagsPerPage)) + num_in_page_;
  num_in_page_ += count;
  return use.flags;
}

std::uint8_t* RowFlags::take(std::int32_t num_rows, std::int32_t per_row) {
  Use& use = next_use();
  use.per_row = per_row;
  for (std::int32_t row = 0; row < num_rows; ++row) use.planned_rows.push_back(rows_.planned_row(row));
  return take_flags(use);
}

std::uint8_t* RowFlags::take(std::span<const std::int32_t> step_rows, std::int32_t per_row) {
  Use& use = next_use();
  use.per_row = per_row;
  for (const std::int32_t row : step_rows) use.planned_rows.push_back(rows_.planned_row(row));
  return take_flags(use);
}

void RowFlags::collect() {
  for (std::size_t i = 0; i < num_uses_; ++i) {
    const Use& use = uses_[i];
    home_.resize(use.planned_rows.size() * static_cast<std::size_t>(use.per_row));
    device_.copy_out(use.flags, std::as_writable_bytes(std::span(home_)));
    for (std::size_t flag = 0; flag < home_.size(); ++flag) {
      if (home_[flag] == 0) rows_.mark_planned(use.planned_rows[flag / static_cast<std::size_t>(use.per_row)]);
    }
  }
  begin_step();
}

}  // namespace kvasir::backend
