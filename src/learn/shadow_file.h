// Shadows in a file, so that learning can be played again.
#pragma once

#include <string>
#include <vector>

#include "kvasir/result.h"
#include "learn/shadow_act.h"

namespace kvasir::learn {

// Sequences of several kinds of traffic.
using ShadowTraffic = std::vector<std::vector<ShadowSequence>>;

// Replaces what was there. `model`: its fingerprint. Error: kMachine.
Status write_shadows(const std::string& path, const std::string& model, const ShadowTraffic& traffic);
// Error (kBadFile) naming the file: it is none of write_shadows(), or another model's.
Result<ShadowTraffic> read_shadows(const std::string& path, const std::string& model);

}  // namespace kvasir::learn
