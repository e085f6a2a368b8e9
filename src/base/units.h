// Sizes in bytes, as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kvasir/result.h"

namespace kvasir {

// "8G", "512MiB", "1.5 gb", "4096". Case does not matter. K, M, G, T and KiB, MiB, GiB, TiB are powers of
// 1024; KB, MB, GB, TB powers of 1000; a bare number is bytes. Fractions round down to whole bytes. Error
// (kUsage): not a number, an unknown unit, negative, or beyond 2^63 - 1.
Result<std::int64_t> parse_bytes(std::string_view text);

// Three significant digits in powers of 1024: "0 B", "1.50 GiB", "12.3 MiB", "512 KiB".
std::string format_bytes(std::int64_t num_bytes);

}  // namespace kvasir
