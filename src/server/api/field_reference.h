// Tables of a request's fields, as the API reference and the OpenAPI description show them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/field.h"
#include "server/api/generation_request.h"

namespace kvasir::server::api {

// The title of a table of fields that stand beside generation_fields().
inline constexpr std::string_view kBesideCommonFields = "Fields, besides the common ones";

// A row of a table, without how it is read.
struct FieldRow {
  std::string_view name, type;
  Range range;
  std::string_view meaning;
};

// The fields that an endpoint's body may have.
struct FieldTable {
  std::string_view title;
  std::vector<FieldRow> own;
  std::vector<FieldRow> shared;  // with other endpoints; one of its own replaces that of its name
  std::string_view remark = {};  // what the reference says in place of the rows
  std::string_view object = {};  // the field whose members are known one by one; empty: none
  std::vector<FieldRow> members = {};
};

template <class Target>
std::vector<FieldRow> rows_of(std::span<const Field<Target>> fields) {
  std::vector<FieldRow> rows;
  for (const Field<Target>& field : fields) {
    rows.push_back({field.name, field.type, field.range, field.meaning});
  }
  return rows;
}

template <class Target>
FieldTable beside_common_fields(std::span<const Field<Target>> fields) {
  return {.title = kBesideCommonFields, .own = rows_of(fields), .shared = rows_of(generation_fields())};
}

// Ends of a range that say something; what only keeps numbers within their type is nullopt.
std::optional<double> shown_min(const Range& range);
std::optional<double> shown_max(const Range& range);

// Markdown: the table's own rows.
void append_fields(std::string& reference, const FieldTable& table);

}  // namespace kvasir::server::api
