#include "backend/gpu/row_flags.h"

#include <algorithm>

namespace kvasir::backend {

void RowFlags::begin_step() {
  page_ = 0;
  for (const auto& page : pages_) page->num_used = 0;
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
  if (page_ < pages_.size() && pages_[page_]->num_used + count > kFlagsPerPage) ++page_;
  if (page_ == pages_.size()) pages_.push_back(std::make_unique<Page>(device_));
  Page& page = *pages_[page_];
  use.page = page_;
  use.first = page.num_used;
  page.num_used += count;
  return page.on_device.resize(std::max(count, kFlagsPerPage)) + use.first;
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
  for (const auto& page : pages_) {
    page->home.resize(static_cast<std::size_t>(page->num_used));
    if (page->num_used > 0) device_.copy_out(page->on_device.data(), std::as_writable_bytes(std::span(page->home)));
  }
  for (std::size_t i = 0; i < num_uses_; ++i) {
    const Use& use = uses_[i];
    const auto per_row = static_cast<std::size_t>(use.per_row);
    const std::uint8_t* const flags = pages_[use.page]->home.data() + use.first;
    for (std::size_t flag = 0; flag < use.planned_rows.size() * per_row; ++flag) {
      if (flags[flag] == 0) rows_.mark_planned(use.planned_rows[flag / per_row]);
    }
  }
  begin_step();
}

}  // namespace kvasir::backend
