#include "backend/cuda/simt/bug.h"

namespace kvasir::simt {

const char* name_of(Bug bug) {
  switch (bug) {
    case Bug::kDivergentBarrier:
      return "divergent barrier";
    case Bug::kDivergentCollective:
      return "divergent collective";
    case Bug::kEarlyExit:
      return "early exit";
    case Bug::kRace:
      return "race";
    case Bug::kMisaligned:
      return "misaligned access";
    case Bug::kUninitialised:
      return "uninitialised memory";
    case Bug::kOutOfBounds:
      return "out of bounds";
    case Bug::kReadOnly:
      return "write to an input";
    case Bug::kAsyncTooEarly:
      return "asynchronous data used early";
    case Bug::kLaunchLimit:
      return "launch limit";
  }
  return "";
}

}  // namespace kvasir::simt
