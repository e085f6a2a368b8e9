// Statistics of a model's keys, taken from texts and kept beside its file, for the KV format k2pv2.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/scoring.h"
#include "kvasir/engine.h"
#include "kvasir/ids.h"
#include "kvasir/result.h"

namespace kvasir::eval {

// Reads texts of one length and writes the file for the model of `config`, which is loaded for them. Returns the number of KV
// heads; 0, and no file, where the format does not suit the model: heads of another width, layers that turn their keys in
// several ways, or fewer keys than tell components from chance. `progress` hears shares from 0 to 1. Errors: of loading and
// reading; kMachine (the file).
Result<std::int64_t> measure_key_components(const EngineConfig& config, std::span<const std::vector<TokenId>> texts,
                                            const std::function<void(double)>& progress, const KeepGoing& keep_going);

}  // namespace kvasir::eval
