#include "quality/shadow_sampler.h"

#include <cmath>
#include <span>

namespace kvasir::quality {

ShadowSampler::ShadowSampler(kv::SipKey key, double share) : key_(key), share_(share) {}

bool ShadowSampler::is_shadow(std::uint64_t request_number) const {
  const std::uint64_t hash = kv::SipHash(key_).digest(std::as_bytes(std::span(&request_number, 1)));
  return std::ldexp(static_cast<double>(hash >> 11), -53) < share_;
}

}  // namespace kvasir::quality
