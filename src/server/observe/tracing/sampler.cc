#include "server/observe/tracing/sampler.h"

#include <cmath>

namespace kvasir::server::observe {

std::optional<Sampler> Sampler::named(std::string_view name, double share) {
  constexpr std::string_view kFollowing = "parentbased_";
  const bool follows_caller = name.starts_with(kFollowing);
  if (follows_caller) name.remove_prefix(kFollowing.size());
  if (name == "always_on") return Sampler(1.0, follows_caller);
  if (name == "always_off") return Sampler(0.0, follows_caller);
  if (name == "traceidratio") return Sampler(share, follows_caller);
  return {};
}

bool Sampler::samples(const TraceId& id, const TraceContext* caller) const {
  if (follows_caller_ && caller != nullptr) return caller->is_sampled;
  if (share_ >= 1.0) return true;
  // The last 8 bytes as a number, as OpenTelemetry's own libraries compare them.
  std::uint64_t number = 0;
  for (std::size_t i = 8; i < id.size(); ++i) number = number << 8 | id[i];
  return number < static_cast<std::uint64_t>(std::ldexp(share_, 64));
}

}  // namespace kvasir::server::observe
