// Which requests are scored again by the exact path.
#pragma once

#include <cstdint>

#include "kv/blocks/siphash.h"

namespace kvasir::quality {

// Chosen by a keyed hash of a request's number, never by what it says. Thread safety: const methods from any thread.
class ShadowSampler {
 public:
  // `share`: of all requests, 0 to 1.
  ShadowSampler(kv::SipKey key, double share);
  bool is_shadow(std::uint64_t request_number) const;

 private:
  kv::SipKey key_;
  double share_;
};

}  // namespace kvasir::quality
