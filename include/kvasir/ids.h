// Strong integer ids: a BlockId never mixes with a token id by accident.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvasir {

using TokenId = std::int32_t;  // an index into the vocabulary; -1 means "none"
inline constexpr TokenId kNoToken = -1;

enum class BlockId : std::int32_t {};     // a KV block of one layer group
enum class SequenceId : std::int64_t {};  // one sample stream inside the engine
enum class RequestId : std::uint64_t {};  // one submitted request (n > 1 makes several sequences)

inline constexpr BlockId kHole = BlockId{-1};  // a block-table entry whose KV is gone

constexpr std::int32_t index_of(BlockId id) { return static_cast<std::int32_t>(id); }

}  // namespace kvasir
