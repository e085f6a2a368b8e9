#include "runtime/head_plan.h"

#include <algorithm>

#include "backend/backend.h"

namespace kvasir::runtime {
namespace {

// The products of so many rows with a group take as long as reading it. An estimate: it moves work, not bits.
constexpr std::int64_t kRowsPerRead = 8;
// Groups here and there are read more slowly than all of them in a row.
constexpr std::int64_t kScatteredCost = 2;

constexpr std::int64_t kGroupsPerWord = 64 / backend::kRowsPerGroup;

}  // namespace

void HeadPlan::clear() {
  rows_.clear();
  groups_.clear();
  whole_.clear();
  searched_.clear();
  allowed_.clear();
  parts_.clear();
}

void HeadPlan::add(std::int32_t row, Reads reads, const sampling::AllowedTokens& allowed) {
  Row& added = rows_.emplace_back(Row{.row = row, .reads = reads});
  if (allowed.are_all() || reads == Reads::kNothing) return;
  added.words = allowed.words();
  if (allowed.count() < sampling::AllowedTokens::kMany) find_groups(added);
}

void HeadPlan::find_groups(Row& row) {
  row.first_group = groups_.size();
  for (std::size_t i = 0; i < row.words.size(); ++i) {
    if (row.words[i] == 0) continue;
    for (std::int64_t g = 0; g < kGroupsPerWord; ++g) {
      const std::int64_t group = static_cast<std::int64_t>(i) * kGroupsPerWord + g;
      const auto bits = static_cast<std::uint16_t>(row.words[i] >> (g * backend::kRowsPerGroup));
      if (bits != 0 && group < num_groups_) groups_.push_back(static_cast<std::int32_t>(group));
    }
  }
  row.end_group = groups_.size();
}

// Beside rows that read the whole head anyway a row costs its products alone.
bool HeadPlan::is_part(const Row& row, bool has_whole) const {
  const auto num_groups = static_cast<std::int64_t>(row.end_group - row.first_group);
  return num_groups > 0 && num_groups * (has_whole ? kRowsPerRead : kScatteredCost) <= num_groups_;
}

void HeadPlan::decide() {
  const bool has_whole = std::ranges::any_of(
      rows_, [](const Row& row) { return row.reads == Reads::kAll && row.first_group == row.end_group; });
  bool is_searched = !has_whole;
  for (const Row& row : rows_) is_searched &= row.reads != Reads::kAll || is_part(row, has_whole);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.reads == Reads::kNothing) continue;
    if (is_part(row, has_whole)) {
      row.part = static_cast<std::int32_t>(parts_.size());
      parts_.push_back(i);
    } else if (row.reads == Reads::kGreatest && is_searched) {
      row.place = static_cast<std::int32_t>(searched_.size());
      searched_.push_back(row.row);
      allowed_.push_back(row.words);
    } else {
      row.place = static_cast<std::int32_t>(whole_.size());
      whole_.push_back(row.row);
    }
  }
  const auto has_words = [](std::span<const std::uint64_t> words) { return !words.empty(); };
  if (std::ranges::none_of(allowed_, has_words)) allowed_.clear();
  // Rows are either searched or whole: no place is taken twice.
  std::int32_t place = static_cast<std::int32_t>(whole_.size() + searched_.size());
  for (const std::size_t i : parts_) rows_[i].place = place++;
}

HeadPlan::Part HeadPlan::part(std::size_t i) const {
  const Row& row = rows_[parts_[i]];
  return {.row = row.row,
          .place = row.place,
          .groups = std::span(groups_).subspan(row.first_group, row.end_group - row.first_group)};
}

std::optional<std::int32_t> HeadPlan::place(std::size_t i) const {
  return rows_[i].reads == Reads::kNothing ? std::nullopt : std::optional(rows_[i].place);
}

std::optional<HeadPlan::Part> HeadPlan::part_of(std::size_t i) const {
  if (rows_[i].part < 0) return std::nullopt;
  return part(static_cast<std::size_t>(rows_[i].part));
}

}  // namespace kvasir::runtime
