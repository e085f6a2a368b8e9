// The API's description for programs, made from the tables that drive it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvasir::server::openapi {

// JSON Schema's types that a row's type means ("string or object" -> "string", "object"); none: any value.
// nullopt: the word is not known.
std::optional<std::vector<std::string_view>> schema_types(std::string_view row_type);

// An OpenAPI 3.1 document: each endpoint, with a schema of its body where it has one. `version`: the program's.
std::string description(std::string_view version);

}  // namespace kvasir::server::openapi
