// Fields of a request as the API reference shows them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api/field.h"

namespace kvasir::server::api {

// The title of a table of fields that stand beside generation_fields().
inline constexpr std::string_view kBesideCommonFields = "Fields, besides the common ones";

void begin_field_table(std::string& reference, std::string_view title);
void append_field(std::string& reference, std::string_view name, std::string_view type, const Range& range,
                  std::string_view meaning);

// A table with a row a field.
template <class Target>
void append_fields(std::string& reference, std::string_view title, std::span<const Field<Target>> fields) {
  begin_field_table(reference, title);
  for (const Field<Target>& field : fields) {
    append_field(reference, field.name, field.type, field.range, field.meaning);
  }
  reference += "\n";
}

}  // namespace kvasir::server::api
