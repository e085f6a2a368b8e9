#include "kv/cells/cell_arena.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace kvasir::kv {
namespace {

constexpr std::int64_t kLeastPageBytes = std::int64_t{64} << 10;
constexpr std::int64_t kCellsPerPage = 32;  // of f16

// Cells are moved together when less than an eighth of the pages is free and a 32nd of all can be won, or
// when spare pages are in use and one can be won.
constexpr std::int64_t kFewFreePages = 8;
constexpr std::int64_t kWorthwhileGain = 32;

constexpr std::size_t word_of(std::int32_t page) { return static_cast<std::size_t>(page) / 64; }
constexpr std::uint64_t bit_of(std::int32_t page) { return std::uint64_t{1} << (page % 64); }

}  // namespace

void CellArena::PageSet::insert(std::int32_t page) {
  CHECK((words_[word_of(page)] & bit_of(page)) == 0);
  words_[word_of(page)] |= bit_of(page);
  ++size_;
}

void CellArena::PageSet::erase(std::int32_t page) {
  CHECK((words_[word_of(page)] & bit_of(page)) != 0);
  words_[word_of(page)] &= ~bit_of(page);
  --size_;
}

std::int32_t CellArena::PageSet::lowest() const {
  if (size_ == 0) return kNone;
  const auto word = std::ranges::find_if(words_, [](std::uint64_t bits) { return bits != 0; });
  return static_cast<std::int32_t>((word - words_.begin()) * 64 + std::countr_zero(*word));
}

std::int64_t CellArena::page_bytes(std::int32_t widest_head_dim) {
  const auto wanted =
      static_cast<std::uint64_t>(kCellsPerPage * cell_bytes(KvFormat::kF16, widest_head_dim));
  return std::max(kLeastPageBytes, static_cast<std::int64_t>(std::bit_ceil(wanted)));
}

std::int64_t CellArena::bytes_for(const Cells& cells, std::int64_t page_bytes) {
  return ceil_div(cells.num_cells, page_bytes / cell_bytes(cells.format, cells.head_dim)) * page_bytes;
}

CellArena::CellArena(std::int64_t capacity_bytes, std::span<const std::int32_t> head_dims,
                     std::int64_t num_spare_pages)
    : page_bytes_(page_bytes(std::ranges::max(head_dims))),
      num_spare_pages_(num_spare_pages),
      head_dims_(head_dims.begin(), head_dims.end()) {
  std::ranges::sort(head_dims_);
  const auto same = std::ranges::unique(head_dims_);
  head_dims_.erase(same.begin(), same.end());
  const std::int64_t num_pages = capacity_bytes / page_bytes_;
  CHECK(num_pages > num_spare_pages && num_pages <= std::numeric_limits<std::int32_t>::max());
  pages_.resize(static_cast<std::size_t>(num_pages));
  free_pages_.resize(num_pages);
  for (std::int32_t page = 0; page < num_pages; ++page) free_pages_.insert(page);
  classes_.resize(head_dims_.size() * kNumKvFormats);
  for (const std::int32_t head_dim : head_dims_) {
    for (int i = 0; i < kNumKvFormats; ++i) {
      const auto format = static_cast<KvFormat>(i);
      if (format == KvFormat::kGone || !supports(format, head_dim)) continue;
      SizeClass& of_format = classes_[class_index(format, head_dim)];
      of_format.cell_bytes = cell_bytes(format, head_dim);
      of_format.cells_per_page = static_cast<std::int32_t>(page_bytes_ / of_format.cell_bytes);
      of_format.roomy.resize(num_pages);
    }
  }
}

std::size_t CellArena::class_index(KvFormat format, std::int32_t head_dim) const {
  const auto width = std::ranges::lower_bound(head_dims_, head_dim);
  CHECK(width != head_dims_.end() && *width == head_dim);
  return static_cast<std::size_t>(width - head_dims_.begin()) * kNumKvFormats +
         static_cast<std::size_t>(format);
}

std::optional<std::int32_t> CellArena::find_page(std::size_t class_index, KvFormat format) {
  SizeClass& of_format = classes_[class_index];
  if (const std::int32_t page = of_format.roomy.lowest(); page != kNone) return page;
  const std::int32_t page = free_pages_.lowest();
  if (page == kNone) return std::nullopt;
  free_pages_.erase(page);
  touched_bytes_ = std::max(touched_bytes_, (page + 1) * page_bytes_);
  ++of_format.num_pages;
  of_format.roomy.insert(page);
  Page& taken = pages_[static_cast<std::size_t>(page)];
  taken.format = format;
  taken.size_class = static_cast<std::int16_t>(class_index);
  taken.next_free.resize(static_cast<std::size_t>(of_format.cells_per_page));
  return page;
}

// Slots that were freed first, then new ones.
std::int32_t CellArena::take_slot(Page& page) {
  ++page.num_used;
  if (page.first_free == kNone) return page.num_started++;
  const std::int32_t slot = page.first_free;
  page.first_free = page.next_free[static_cast<std::size_t>(slot)];
  return slot;
}

std::optional<KvCellRef> CellArena::allocate(KvFormat format, std::int32_t head_dim) {
  const std::size_t index = class_index(format, head_dim);
  SizeClass& of_format = classes_[index];
  CHECK(of_format.cells_per_page > 0);
  const auto page = find_page(index, format);
  if (!page) return std::nullopt;
  Page& used = pages_[static_cast<std::size_t>(*page)];
  const std::int32_t slot = take_slot(used);
  if (used.num_used == of_format.cells_per_page) of_format.roomy.erase(*page);
  ++of_format.num_cells;
  used_bytes_ += of_format.cell_bytes;
  return KvCellRef(*page * page_bytes_ + slot * of_format.cell_bytes, format);
}

void CellArena::free(KvCellRef cell) {
  const auto number = static_cast<std::int32_t>(cell.offset() / page_bytes_);
  Page& page = pages_[static_cast<std::size_t>(number)];
  CHECK(page.format == cell.format() && page.num_used > 0);
  SizeClass& of_format = size_class(page);
  const auto slot = static_cast<std::int32_t>(cell.offset() % page_bytes_ / of_format.cell_bytes);
  CHECK(slot < page.num_started);
  if (page.is_closed) {
    ++of_format.num_closed_slots;
  } else if (page.num_used == of_format.cells_per_page) {
    of_format.roomy.insert(number);
  }
  page.next_free[static_cast<std::size_t>(slot)] = static_cast<std::int16_t>(page.first_free);
  page.first_free = slot;
  --of_format.num_cells;
  used_bytes_ -= of_format.cell_bytes;
  if (--page.num_used > 0) return;
  if (page.is_closed) {
    of_format.num_closed_slots -= of_format.cells_per_page;
  } else {
    of_format.roomy.erase(number);
  }
  --of_format.num_pages;
  free_pages_.insert(number);
  page.is_closed = false;
  page.format = KvFormat::kGone;
  page.num_started = 0;
  page.first_free = kNone;
}

bool CellArena::close_sparse_pages(std::int32_t max_cells) {
  CHECK(closed_pages_.empty());
  std::int64_t gain = 0;
  for (const SizeClass& of_format : classes_) gain += num_superfluous_pages(of_format);
  const std::int64_t least_gain = num_free_pages() < 0 ? 1 : ceil_div(num_pages(), kWorthwhileGain);
  if (num_free_pages() * kFewFreePages >= num_pages() || gain < least_gain) return false;
  std::vector<std::int32_t> sparse;
  for (std::int32_t page = 0; page < num_pages(); ++page) {
    const Page& of = pages_[static_cast<std::size_t>(page)];
    if (of.format != KvFormat::kGone && of.num_used < size_class(of).cells_per_page)
      sparse.push_back(page);
  }
  std::ranges::stable_sort(
      sparse, {}, [this](std::int32_t page) { return pages_[static_cast<std::size_t>(page)].num_used; });
  std::vector<std::int64_t> num_closed(classes_.size());
  for (const std::int32_t number : sparse) {
    Page& page = pages_[static_cast<std::size_t>(number)];
    std::int64_t& closed = num_closed[static_cast<std::size_t>(page.size_class)];
    if (page.num_used > max_cells || closed == num_superfluous_pages(size_class(page))) continue;
    max_cells -= page.num_used;
    ++closed;
    page.is_closed = true;
    SizeClass& of_format = size_class(page);
    of_format.num_closed_slots += of_format.cells_per_page - page.num_used;
    of_format.roomy.erase(number);
    closed_pages_.push_back(number);
  }
  return !closed_pages_.empty();
}

void CellArena::reopen_pages() {
  for (const std::int32_t number : closed_pages_) {
    Page& page = pages_[static_cast<std::size_t>(number)];
    if (!page.is_closed) continue;  // it ran empty
    page.is_closed = false;
    SizeClass& of_format = size_class(page);
    of_format.num_closed_slots -= of_format.cells_per_page - page.num_used;
    if (page.num_used < of_format.cells_per_page) of_format.roomy.insert(number);
  }
  closed_pages_.clear();
}

std::int64_t CellArena::num_available(KvFormat format, std::int32_t head_dim) const {
  const SizeClass& of_format = classes_[class_index(format, head_dim)];
  return num_free_pages() * of_format.cells_per_page + num_free_slots(of_format);
}

bool CellArena::has_room_for(std::span<const Cells> wanted) const {
  std::int64_t num_new_pages = 0;
  for (const Cells& cells : wanted) {
    if (cells.num_cells == 0) continue;
    const SizeClass& of_format = classes_[class_index(cells.format, cells.head_dim)];
    // While spare pages are in use, each width must have as much room in the pages that it has.
    if (num_available(cells.format, cells.head_dim) < cells.num_cells) return false;
    const std::int64_t num_lacking = std::max<std::int64_t>(0, cells.num_cells - num_free_slots(of_format));
    num_new_pages += ceil_div<std::int64_t>(num_lacking, of_format.cells_per_page);
  }
  return num_new_pages <= std::max<std::int64_t>(0, num_free_pages());
}

std::int64_t CellArena::used_bytes(KvFormat format) const {
  std::int64_t bytes = 0;
  for (std::size_t width = 0; width < head_dims_.size(); ++width) {
    const SizeClass& of_format = classes_[width * kNumKvFormats + static_cast<std::size_t>(format)];
    bytes += of_format.num_cells * of_format.cell_bytes;
  }
  return bytes;
}

}  // namespace kvasir::kv
