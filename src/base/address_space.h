// Addresses that this process may still take.
#pragma once

#include <cstdint>
#include <optional>

namespace kvasir {

// Bytes that `ulimit -v` leaves beside what is mapped now; nothing: there is no such limit. It allocates nothing and
// takes no lock, so a signal handler may call it.
//
// Thread safety: any thread.
std::optional<std::int64_t> free_address_bytes();

}  // namespace kvasir
