// The metadata keys of an architecture's own namespace: which of them mean what here, and which do not.
#pragma once

#include <string>
#include <vector>

#include "io/weight_source.h"

namespace kvasir::model {

struct KeyReport {
  // Keys that ask for arithmetic that no architecture here does: computing without it would be wrong.
  std::vector<std::string> refused;  // a line each
  // Keys that nobody knows. They may matter or not, so they are named.
  std::vector<std::string> unknown;  // "KEY"
};

// Reports on the keys "<general.architecture>.*". Empty when the file names no architecture.
KeyReport check_keys(const io::Metadata& metadata);

}  // namespace kvasir::model
