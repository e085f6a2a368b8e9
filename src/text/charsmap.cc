#include "text/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "base/code_point.h"
#include "base/utf8.h"
#include "text/unicode/normal_form.h"

namespace kvasir::text {
namespace {

constexpr std::size_t kUnitBytes = 4;
constexpr std::size_t kMaxGraphemeBytes = 5;

bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) != 0; }
std::uint32_t leaf_value(std::uint32_t unit) { return unit & 0x7FFFFFFF; }
std::uint32_t label(std::uint32_t unit) { return unit & 0x800000FF; }
std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data(), kUnitBytes);
  return std::endian::native == std::endian::little ? value : std::byteswap(value);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view bytes) {
  const std::size_t trie_bytes = bytes.size() < kUnitBytes ? 0 : little_endian(bytes);
  if (bytes.size() < kUnitBytes || trie_bytes > bytes.size() - kUnitBytes || trie_bytes % kUnitBytes != 0) {
    return make_error(ErrorKind::kBadFile,
                      fmt::format("the precompiled character map has {} bytes, its trie says {}",
                                  bytes.size(), trie_bytes));
  }
  Charsmap map;
  bytes.remove_prefix(kUnitBytes);
  map.units_.reserve(trie_bytes / kUnitBytes);
  for (std::size_t at = 0; at < trie_bytes; at += kUnitBytes)
    map.units_.push_back(little_endian(bytes.substr(at)));
  map.pool_ = to_valid_utf8(bytes.substr(trie_bytes));
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view key) const {
  if (units_.empty()) return std::nullopt;
  std::uint32_t node = offset(units_[0]);
  for (const char byte : key) {
    const auto wanted = static_cast<unsigned char>(byte);
    node ^= wanted;
    if (wanted == 0 || node >= units_.size() || label(units_[node]) != wanted) return std::nullopt;
    const bool is_end = has_leaf(units_[node]);
    node ^= offset(units_[node]);
    if (!is_end) continue;
    if (node >= units_.size() || leaf_value(units_[node]) > pool_.size()) return std::nullopt;
    const std::size_t begin = leaf_value(units_[node]);
    if (begin < pool_.size() && (static_cast<unsigned char>(pool_[begin]) & 0xC0) == 0x80)
      return std::nullopt;
    return std::string_view(pool_).substr(begin, pool_.find('\0', begin) - begin);
  }
  return std::nullopt;
}

std::size_t Charsmap::longest_replacement() const {
  std::size_t longest = 0, length = 0;
  for (const char byte : pool_) {
    length = byte == '\0' ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

std::string Charsmap::normalize(std::string_view text) const {
  std::string normal;
  normal.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = grapheme_end(text, begin);
    if (end - begin <= kMaxGraphemeBytes) {
      if (const auto found = find(text.substr(begin, end - begin))) {
        normal += *found;
        begin = end;
        continue;
      }
    }
    for (; begin < end;) {
      const std::string_view character = text.substr(begin, code_point_at(text, begin).size_bytes);
      normal += find(character).value_or(character);
      begin += character.size();
    }
  }
  return normal;
}

}  // namespace kvasir::text
