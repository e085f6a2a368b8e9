// How requests fared by what kind they were: which prompts are slow, whose, and whether the cache helps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "server/observe/access_log.h"

namespace kvasir::server::observe {

// The name of values and tenants beyond those with a line of their own. No key may have it.
inline constexpr std::string_view kOthers = "(others)";

// Each kind by itself, so that there are as many series as values and not as combinations; values that would
// be too many are kOthers.
//
// Thread safety: none.
class RequestSlices {
 public:
  struct Sums {
    std::int64_t num_requests = 0;
    double first_token_seconds = 0.0;
    double total_seconds = 0.0;
  };
  // E.g. ("prompt_tokens", "le_256").
  using Slice = std::pair<std::string, std::string>;

  // Requires: record.generation.
  void count(const AccessRecord& record);
  const std::map<Slice, Sums>& sums() const { return sums_; }

 private:
  void add(std::string_view kind, std::string value, const AccessRecord& record);

  std::map<Slice, Sums> sums_;
  std::map<std::string, int, std::less<>> num_values_;  // of each kind
};

}  // namespace kvasir::server::observe
