// The layer in a tensor's name.
#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

namespace kvasir {

// 7 for "blk.7.attn_q.weight"; -1 for a tensor that is no layer's.
inline std::int32_t layer_of_tensor(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  std::int32_t layer = -1;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return error == std::errc() ? layer : -1;
}

}  // namespace kvasir
