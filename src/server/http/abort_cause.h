// Why a response ends before it has reached its client.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace kvasir::server::http {

// kCancelled: the client said so, on a connection that goes on.
enum class AbortCause : std::uint8_t { kDisconnected, kSlowReader, kCancelled, kOutOfMemory };
inline constexpr std::array kAbortCauses = {AbortCause::kDisconnected, AbortCause::kSlowReader, AbortCause::kCancelled,
                                            AbortCause::kOutOfMemory};

constexpr std::string_view name_of(AbortCause cause) {
  switch (cause) {
    case AbortCause::kSlowReader:
      return "slow_reader";
    case AbortCause::kCancelled:
      return "cancelled";
    case AbortCause::kOutOfMemory:
      return "out_of_memory";
    case AbortCause::kDisconnected:
      break;
  }
  return "disconnected";
}

}  // namespace kvasir::server::http
