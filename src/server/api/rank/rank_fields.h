// Fields that the endpoints of scores share.
#pragma once

#include <span>
#include <vector>

#include "server/api/field.h"
#include "server/api/field_reference.h"
#include "server/api/rank/pair_scores.h"

namespace kvasir::server::api {

// A text: a string, or an object with a text.
ApiResult<RankText> rank_text_of(const FieldInput& field);
// One text or a list of them, at most as many as a request may have inputs. Errors (400): none, too many.
ApiResult<std::vector<RankText>> rank_texts_of(const FieldInput& field);

// Error (400): more texts than a request may have inputs.
ApiStatus check_num_texts(const FieldInput& field, std::int64_t count);

// The rows of what both say about a score.
std::span<const Field<PairOptions>> pair_fields();
// For the API reference: an endpoint's own rows, and these.
template <class Target>
std::vector<FieldRow> rows_with_pair_fields(std::span<const Field<Target>> own) {
  std::vector<FieldRow> rows = rows_of(own);
  for (const FieldRow& row : rows_of(pair_fields())) rows.push_back(row);
  return rows;
}

}  // namespace kvasir::server::api
