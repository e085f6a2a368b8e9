// Checks for obstacles on this machine.
#pragma once

#include <string>
#include <vector>

#include "base/machine.h"

namespace kvasir::cli {

struct HealthCheck {
  std::string name;
  bool ok = false;
  std::string detail;  // the finding and, when not ok, the advice
};

// Looks, changes nothing; takes as long as starting python3 once.
std::vector<HealthCheck> check_health(const Machine& machine);

}  // namespace kvasir::cli
