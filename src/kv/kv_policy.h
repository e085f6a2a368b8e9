// Which lossy treatment a cache gives its blocks. Today there is one: none.
#pragma once

#include <cstdint>
#include <span>

#include "kv/layer_group.h"

namespace kvasir::kv {

enum class KvPolicy : std::uint8_t { kNone };

// Part of every prefix key: KV made under one policy or cell format is never a hit under another.
constexpr std::uint64_t policy_fingerprint(KvPolicy policy, std::span<const LayerGroup> groups) {
  std::uint64_t fingerprint = static_cast<std::uint64_t>(policy) + 1;
  for (const LayerGroup& group : groups)
    fingerprint = fingerprint * 31 + static_cast<std::uint64_t>(group.format) + 1;
  return fingerprint;
}

}  // namespace kvasir::kv
