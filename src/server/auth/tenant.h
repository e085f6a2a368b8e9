// Whom a request is served for.
#pragma once

#include <cstdint>
#include <string>

namespace kvasir::server::auth {

// 0: no limit.
struct RateLimits {
  std::int64_t requests_per_minute = 0;
  std::int64_t tokens_per_minute = 0;  // of prompts and answers

  bool operator==(const RateLimits&) const = default;
};

// Where nobody is asked for an API key all are one, without a name.
struct Tenant {
  std::string name;
  RateLimits limits;
  bool is_operator =
      true;  // sees what others' requests cost; where keys are asked for, only whose key says so
  std::string key_id =
      {};  // of the key that came: a new one of the same name finds nothing of what the old one cached
};

}  // namespace kvasir::server::auth
