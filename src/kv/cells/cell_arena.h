// Memory for KV cells of every format, by offset: what is free, what is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/checked_math.h"
#include "kv/cells/cell.h"

namespace kvasir::kv {

// Shares a fixed number of bytes out to cells of different sizes. The bytes are cut into pages; a page serves
// cells of one format and width at a time, and when its last cell is freed it may serve any other. New cells go to the
// lowest page of their format and width that has room, so that the highest ones run empty. Sequences end in no order
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
  // `head_dims`: of the cells that it will have.
  CellArena(std::int64_t capacity_bytes, std::span<const std::int32_t> head_dims,
            std::int64_t num_spare_pages = 0);
  CellArena(std::int64_t capacity_bytes, std::int32_t head_dim, std::int64_t num_spare_pages = 0)
      : CellArena(capacity_bytes, {&head_dim, 1}, num_spare_pages) {}

  // Room for 32 f16 cells or more of the widest heads, so that little is left over at the end of a page.
  static std::int64_t page_bytes(std::int32_t widest_head_dim);
  // Whole pages that hold so many cells of the format, where all cells are as wide.
  static std::int64_t bytes_for(std::int64_t num_cells, KvFormat format, std::int32_t head_dim) {
    return bytes_for({.format = format, .head_dim = head_dim, .num_cells = num_cells}, page_bytes(head_dim));
  }

  // Cells of one format and width.
  struct Cells {
    KvFormat format = KvFormat::kF16;
    std::int32_t head_dim = 64;
    std::int64_t num_cells = 0;
  };
  // Whole pages that hold them.
  static std::int64_t bytes_for(const Cells& cells, std::int64_t page_bytes);

  // A cell of the format and width; empty when no page has room. Requires: the constructor was given the width,
  // and it supports the format.
  std::optional<KvCellRef> allocate(KvFormat format, std::int32_t head_dim);
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
  std::int64_t num_available(KvFormat format, std::int32_t head_dim) const;
  // Whether allocate() would give all of these together without a spare page. Requires: no format and width
  // comes twice.
  bool has_room_for(std::span<const Cells> wanted) const;

  std::int64_t capacity_bytes() const { return num_pages() * page_bytes_; }
  std::int64_t reserved_bytes() const { return (num_pages() - free_pages_.size()) * page_bytes_; }
  // No cell has ever lain beyond.
  std::int64_t touched_bytes() const { return touched_bytes_; }
  std::int64_t used_bytes() const { return used_bytes_; }
  std::int64_t used_bytes(KvFormat format) const;

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
    std::int16_t size_class = 0;        // index into classes_ where it is not free
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
  std::size_t class_index(KvFormat format, std::int32_t head_dim) const;
  const SizeClass& size_class(const Page& page) const {
    return classes_[static_cast<std::size_t>(page.size_class)];
  }
  SizeClass& size_class(const Page& page) { return classes_[static_cast<std::size_t>(page.size_class)]; }
  // Cells that the pages of a class still have room for.
  static std::int64_t num_free_slots(const SizeClass& of_size) {
    return of_size.num_pages * of_size.cells_per_page - of_size.num_cells - of_size.num_closed_slots;
  }
  std::optional<std::int32_t> find_page(std::size_t class_index, KvFormat format);
  std::int64_t num_superfluous_pages(const SizeClass& of_format) const {
    if (of_format.cells_per_page == 0) return 0;
    return of_format.num_pages - ceil_div<std::int64_t>(of_format.num_cells, of_format.cells_per_page);
  }
  std::int32_t take_slot(Page& page);

  std::int64_t page_bytes_;
  std::int64_t num_spare_pages_;
  std::vector<std::int32_t> head_dims_;  // ascending
  std::vector<SizeClass> classes_;       // [head_dims_][formats]
  std::vector<Page> pages_;
  PageSet free_pages_;
  std::vector<std::int32_t> closed_pages_;
  std::int64_t used_bytes_ = 0;
  std::int64_t touched_bytes_ = 0;
};

}  // namespace kvasir::kv
