// Which part of the head each row of a step needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sampling/allowed_tokens.h"

namespace kvasir::runtime {

// Rows are split by what they read. A row that may choose among few tokens needs the groups of logits that hold them;
// greedy rows need the greatest, which can be searched for. Rows that need all logits read the whole head once, and
// others join them where that costs less than a reading of their own. A row's logits have the same bits either way.
//
// Thread safety: none. Keeps its memory: nothing is allocated once steps repeat.
class HeadPlan {
 public:
  enum class Reads : std::uint8_t {
    kNothing,   // there is one token to choose
    kGreatest,  // the greatest logit of those that are allowed
    kAll,       // all logits that are allowed
  };

  // num_groups: of kRowsPerGroup logits, of the whole head.
  explicit HeadPlan(std::int64_t num_groups) : num_groups_(num_groups) {}

  void clear();
  // A row by its number among those that want logits. The words of `allowed` are borrowed until the next clear().
  void add(std::int32_t row, Reads reads, const sampling::AllowedTokens& allowed);
  // After the last add().
  void decide();

  // Rows whose logits are all computed; they have the first places.
  std::span<const std::int32_t> whole() const { return whole_; }
  // Rows whose greatest logit is searched for, in the places behind. With words for each where one has some.
  std::span<const std::int32_t> searched() const { return searched_; }
  std::span<const std::span<const std::uint64_t>> allowed() const { return allowed_; }
  std::int32_t first_searched_place() const { return static_cast<std::int32_t>(whole_.size()); }

  // A row of which some groups alone are computed.
  struct Part {
    std::int32_t row = 0;
    std::int32_t place = 0;
    std::span<const std::int32_t> groups;  // ascending
  };
  std::size_t num_parts() const { return parts_.size(); }
  Part part(std::size_t i) const;

  // Where the logits of the i-th row that was added lie; nothing: it has none.
  std::optional<std::int32_t> place(std::size_t i) const;
  // Its part; null: it has all of them.
  std::optional<Part> part_of(std::size_t i) const;

 private:
  struct Row {
    std::int32_t row = 0;
    Reads reads = Reads::kNothing;
    std::span<const std::uint64_t> words = {};   // of a mask
    std::size_t first_group = 0, end_group = 0;  // in groups_, of a row with few tokens
    std::int32_t place = -1;
    std::int32_t part = -1;
  };

  void find_groups(Row& row);
  bool is_part(const Row& row, bool has_whole) const;

  const std::int64_t num_groups_;
  std::vector<Row> rows_;
  std::vector<std::int32_t> groups_;
  std::vector<std::int32_t> whole_, searched_;
  std::vector<std::span<const std::uint64_t>> allowed_;
  std::vector<std::size_t> parts_;  // places in rows_
};

}  // namespace kvasir::runtime
