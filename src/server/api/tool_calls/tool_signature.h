// The part of a tool's declaration that reading its calls needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace kvasir::server::api {

// The JSON types that an argument may have, as a set.
using JsonTypes = std::uint8_t;
inline constexpr JsonTypes kStringType = 1, kNumberType = 2, kBooleanType = 4, kNullType = 8,
                           kObjectType = 16, kArrayType = 32, kAnyType = 63;

struct ToolSignature {
  std::string name;
  std::vector<std::pair<std::string, JsonTypes>> arguments;

  // Any for one that the schema does not name.
  JsonTypes types_of(std::string_view argument) const;
};

// Of those in `tools`, as templates read them, that are among `names`. One without a schema takes anything.
std::vector<ToolSignature> tool_signatures(const jinja::Value& tools, std::span<const std::string> names);
// The arguments whose values are texts, whatever a bare value looks like.
std::vector<std::string> text_arguments(const ToolSignature& tool);
// Null when there is no such tool.
const ToolSignature* find_tool(std::span<const ToolSignature> tools, std::string_view name);

// A bare text as a JSON value of one of these types: itself if it is one of them, else a string.
std::string typed_json(std::string_view text, JsonTypes types);

}  // namespace kvasir::server::api
