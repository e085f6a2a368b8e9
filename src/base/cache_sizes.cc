#include "base/cache_sizes.h"

#include <fmt/format.h>

#include "base/text_file.h"
#include "base/units.h"

namespace kvasir {
namespace {

// The first word of a file, empty when there is none.
std::string read_word(const std::string& path) {
  const std::string text = read_text_file(path).value_or("");
  return text.substr(0, text.find_first_of(" \n"));
}

}  // namespace

CacheSizes read_cache_sizes(const std::string& root) {
  CacheSizes sizes;
  for (int index = 0;; ++index) {
    const std::string cache = fmt::format("{}/sys/devices/system/cpu/cpu0/cache/index{}/", root, index);
    const std::string level = read_word(cache + "level");
    if (level.empty()) return sizes;
    if (read_word(cache + "type") == "Instruction") continue;
    const std::int64_t num_bytes = parse_bytes(read_word(cache + "size")).value_or(0);  // "48K"
    if (level == "1") sizes.l1_bytes = num_bytes;
    if (level == "2") sizes.l2_bytes = num_bytes;
    if (level == "3") sizes.l3_bytes = num_bytes;
  }
}

}  // namespace kvasir
