#include "quality/shadow_sampler.h"

#include <span>

#include "quality/hashed_place.h"

namespace kvasir::quality {

ShadowSampler::ShadowSampler(kv::SipKey key, double share) : key_(key), share_(share) {}

bool ShadowSampler::is_shadow(std::uint64_t request_number) const {
  return hashed_place(key_, std::as_bytes(std::span(&request_number, 1))) < share_;
}

}  // namespace kvasir::quality
