#include "sim/cell_memory.h"

#include <fmt/format.h>

#include <algorithm>

namespace kvasir::sim {
namespace {

constexpr std::uint64_t kStampsPerBlock = 1 << 20;  // one for each of its cells

}  // namespace

CellMemory::CellMemory(const kv::KvCacheManager& kv)
    : kv_(kv),
      memory_(static_cast<std::size_t>(kv.cells().arena().capacity_bytes() / kv::KvCellRef::kAlignment)) {}

std::pair<std::size_t, std::size_t> CellMemory::granules(kv::KvCellRef cell, std::int32_t head_dim) {
  const auto begin = static_cast<std::size_t>(cell.offset() / kv::KvCellRef::kAlignment);
  const std::int64_t bytes = kv::cell_bytes(cell.format(), head_dim);
  return {begin, begin + static_cast<std::size_t>(bytes / kv::KvCellRef::kAlignment)};
}

void CellMemory::fill(kv::KvCellRef cell, std::int32_t head_dim, std::uint64_t stamp) {
  const auto [begin, end] = granules(cell, head_dim);
  std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, stamp);
}

bool CellMemory::holds(kv::KvCellRef cell, std::int32_t head_dim, std::uint64_t stamp) const {
  const auto [begin, end] = granules(cell, head_dim);
  return std::ranges::all_of(std::span(memory_).subspan(begin, end - begin),
                             [stamp](std::uint64_t granule) { return granule == stamp; });
}

std::optional<std::uint64_t> CellMemory::stamp_of(kv::KvCellRef cell, std::int32_t head_dim) const {
  const std::uint64_t stamp = memory_[granules(cell, head_dim).first];
  if (stamp == 0 || !holds(cell, head_dim, stamp)) return std::nullopt;
  return stamp;
}

std::string CellMemory::convert(const kv::CellConversions& conversions) {
  std::string fault;
  conversions.for_each_round([&](std::span<const kv::CellConversion> round) {
    if (fault.empty()) fault = convert_round(round);
  });
  return fault;
}

// A round may run in any order: what one conversion writes none of the others may read.
std::string CellMemory::convert_round(std::span<const kv::CellConversion> round) {
  is_source_.assign(memory_.size(), false);
  for (const kv::CellConversion& conversion : round) {
    const auto [begin, end] = granules(conversion.from, conversion.head_dim);
    for (std::size_t granule = begin; granule < end; ++granule) is_source_[granule] = true;
  }
  for (const kv::CellConversion& conversion : round) {
    const auto [begin, end] = granules(conversion.to, conversion.head_dim);
    for (std::size_t granule = begin; granule < end; ++granule) {
      if (is_source_[granule])
        return fmt::format("the cell at {} is written where another is read", conversion.to.offset());
    }
    const auto stamp = stamp_of(conversion.from, conversion.head_dim);
    // To another page: a prompt that runs layer by layer has cells before it writes them.
    if (!stamp && conversion.from.format() != conversion.to.format()) {
      return fmt::format("the cell at {} is no whole {} cell when it is to become {}",
                         conversion.from.offset(), kv::name_of(conversion.from.format()),
                         kv::name_of(conversion.to.format()));
    }
    fill(conversion.to, conversion.head_dim, stamp.value_or(0));
  }
  return {};
}

void CellMemory::begin_block(std::int32_t group, BlockId block) {
  const std::uint64_t stamp = stamp_of_[{group, block}] = kStampsPerBlock * next_stamp_++;
  for (std::int32_t cell = 0; cell < kv_.cells().cells_per_block(group); ++cell) {
    fill(kv_.cells().at(group, block, cell), kv_.cells().head_dim(group), stamp + static_cast<std::uint64_t>(cell));
  }
}

std::string CellMemory::check(std::int32_t group, BlockId block) const {
  const auto stamp = stamp_of_.find({group, block});
  if (stamp == stamp_of_.end())
    return fmt::format("group {}: block {} was never written", group, index_of(block));
  for (std::int32_t cell = 0; cell < kv_.cells().cells_per_block(group); ++cell) {
    const kv::KvCellRef ref = kv_.cells().at(group, block, cell);
    if (ref.is_gone() || holds(ref, kv_.cells().head_dim(group), stamp->second + static_cast<std::uint64_t>(cell))) continue;
    return fmt::format("group {}: cell {} of block {} ({}) does not hold what was written", group, cell,
                       index_of(block), kv::name_of(ref.format()));
  }
  return {};
}

}  // namespace kvasir::sim
