// Environment variables as typed values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir {

// Each gives nothing when the variable is unset or empty, and Error (kUsage) naming the variable, what it may
// hold and what it holds when the value does not fit. Thread safety: none of them may run beside setenv.

std::optional<std::string> env_string(const char* name);
// A decimal integer in [min, max].
Result<std::optional<std::int64_t>> env_integer(const char* name, std::int64_t min, std::int64_t max);
// As parse_switch reads it.
Result<std::optional<bool>> env_flag(const char* name);
// A size as parse_bytes reads it.
Result<std::optional<std::int64_t>> env_bytes(const char* name);

// 1, true, yes, on; 0, false, no, off; in upper or lower case. Nothing for any other text.
std::optional<bool> parse_switch(std::string_view text);

}  // namespace kvasir
