// Seats that are kept for tenants with less than their share of them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kvasir/waiting_policy.h"

namespace kvasir::admission {

// With several tenants three of sixteen seats are kept, so that a tenant with few requests need not wait for
// the end of another's.
struct SeatReservation {
  std::int32_t num_reserved = 0;  // 0: none
  std::int32_t share = 0;         // seats of each tenant, if all had the same

  static SeatReservation of(WaitingPolicy policy, std::int32_t max_num_seqs, std::int32_t num_tenants) {
    const bool reserves = policy == WaitingPolicy::kSloValue && num_tenants >= 2;
    return {.num_reserved = reserves ? std::max(1, max_num_seqs * 3 / 16) : 0,
            .share = std::max(1, max_num_seqs / std::max(1, num_tenants))};
  }

  // Whether a tenant with `num_own_running` sequences has to leave the seats that are left to others.
  bool excludes(std::int32_t num_own_running, std::int32_t num_running, std::int32_t max_num_seqs) const {
    if (num_reserved == 0 || num_own_running < share) return false;
    return num_running > 0 && num_running + num_reserved >= max_num_seqs;
  }
};

}  // namespace kvasir::admission
