// Choices that use adapters at the moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/adapter_set.h"
#include "kvasir/engine.h"

namespace kvasir {

// Counts the choices of requests by their adapters. Null is the model as it is, which is not counted.
//
// Thread safety: none; the engine thread's.
class AdapterUses {
 public:
  // Choices of a request that came; one of them that ended.
  void begin(const AdapterSet::Entry* adapter, std::int32_t num_choices);
  void end(const AdapterSet::Entry* adapter);
  // A step begins; a choice runs in it.
  void begin_step();
  void run(const AdapterSet::Entry* adapter);

  void describe(EngineStats& stats) const;

 private:
  std::map<std::string, AdapterUse> by_name_;  // those with choices
};

}  // namespace kvasir
