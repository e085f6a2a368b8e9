// Memory for KV cells of every format, by offset: what is free, what is used.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/checked_math.h"
#include "kv/cells/cell.h"

namespace kvasir::kv {

// Shares a fixed number of bytes out to cells of different sizes. The bytes are cut into pages; a page serves
// cells of one format at a time, and when its last cell is freed it may serve any other. New cells go to the
// lowest page of their format that has room, so that the highest ones run empty. Sequences end in no order
// though, and leave pages of each format that are neither full nor empty: close_sparse_pages() names those
// whose cells would find room in the others.
//
// Bookkeeping only: the runtime owns the memory behind the offsets. It costs two bytes a cell and a little a
// page.
//
// Thread safety: none; the engine thread is the only caller.
// Invariants: used_bytes() is the sum of the sizes of live cells; reserved_bytes() that of pages in use.
class CellArena {
 public:
  // Requires: capacity_bytes of at least one page beside the spare ones. Those do not count as available,
  // though allocate() takes from them too: a caller that asks before it allocates leaves them to others.
  CellArena(std::int64_t capacity_bytes, std::int32_t head_dim, std::int64_t num_spare_pages = 0);

  // Room for 32 f16 cells or more, so that little is left over at the end of a page.
  static std::int64_t page_bytes(std::int32_t head_dim);
  // Whole pages that hold so many cells of the format.
  static std::int64_t bytes_for(std::int64_t num_cells, KvFormat format, std::int32_t head_dim);

  // The bytes of the bookkeeping, whatever is in use: without the places within pages.
  static std::int64_t table_bytes(std::int64_t capacity_bytes, std::int32_t head_dim);

  // A cell of the format; empty when no page has room.
  std::optional<KvCellRef> allocate(KvFormat format);
  // Requires: allocate() gave it, and it was not freed since.
  void free(KvCellRef cell);

  // When free pages are few and cells could stand closer: closes the emptiest pages, with at most `max_cells`
  // cells, for allocate(). The owner of a closed page's cells allocates others for them and frees them. False
  // when there is nothing to gain. Requires: no page is closed.
  bool close_sparse_pages(std::int32_t max_cells);
  bool is_closed(KvCellRef cell) const {
    return pages_[static_cast<std::size_t>(cell.offset() / page_bytes_)].is_closed;
  }
  // Those that still have cells serve their format again.
  void reopen_pages();

  // Cells of the format that allocate() would still give in a row without a spare page; negative when some of
  // these would have to be given back first.
  std::int64_t num_available(KvFormat format) const;

  std::int64_t capacity_bytes() const { return num_pages() * page_bytes_; }
  std::int64_t reserved_bytes() const { return (num_pages() - free_pages_.size()) * page_bytes_; }
  // No cell has ever lain beyond.
  std::int64_t touched_bytes() const { return touched_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t used_bytes(KvFormat format) const {
    return size_class(format).num_cells * size_class(format).cell_bytes;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  // Page numbers, the lowest of which is found fast.
  class PageSet {
   public:
    void resize(std::int64_t num_pages) { words_.resize(static_cast<std::size_t>(num_pages + 63) / 64); }
    void insert(std::int32_t page);
    void erase(std::int32_t page);
    std::int32_t lowest() const;  // kNone when there is none
    std::int64_t size() const { return size_; }

   private:
    std::vector<std::uint64_t> words_;
    std::int64_t size_ = 0;
  };
  struct Page {
    KvFormat format = KvFormat::kGone;  // kGone: free
    std::int32_t num_used = 0;
    std::int32_t num_started = 0;  // slots from here on were never used since the page was taken
    bool is_closed = false;
    std::int32_t first_free = kNone;
    std::vector<std::int16_t> next_free;  // by slot
  };
  struct SizeClass {
    std::int64_t cell_bytes = 0;
    std::int32_t cells_per_page = 0;
    std::int64_t num_pages = 0;
    std::int64_t num_cells = 0;
    std::int64_t num_closed_slots = 0;  // free ones of closed pages
    PageSet roomy;                      // its other pages with a free slot
  };

  std::int64_t num_pages() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t num_free_pages() const { return free_pages_.size() - num_spare_pages_; }
  const SizeClass& size_class(KvFormat format) const { return classes_[static_cast<std::size_t>(format)]; }
  SizeClass& size_class(KvFormat format) { return classes_[static_cast<std::size_t>(format)]; }
  std::optional<std::int32_t> find_page(KvFormat format);
  std::int64_t num_superfluous_pages(const SizeClass& of_format) const {
    if (of_format.cells_per_page == 0) return 0;
    return of_format.num_pages - ceil_div<std::int64_t>(of_format.num_cells, of_format.cells_per_page);
  }
  std::int32_t take_slot(Page& page);

  std::int64_t page_bytes_;
  std::int64_t num_spare_pages_;
  std::array<SizeClass, kNumKvFormats> classes_;
  std::vector<Page> pages_;
  PageSet free_pages_;
  std::vector<std::int32_t> closed_pages_;
  std::int64_t used_bytes_ = 0;
  std::int64_t touched_bytes_ = 0;
};

}  // namespace kvasir::kv
