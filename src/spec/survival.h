// How likely guesses are to be right together with all before them.
#pragma once

#include <cstdint>

namespace kvasir::spec {

// A chain's survival is the product of its guesses' estimates, each to a power. The power follows what comes of them, so that
// as many guesses are right as were expected: guesses of one chain are not independent, and estimates lag behind.
//
// Thread safety: none.
class Survival {
 public:
  // The survival of a guess behind a chain that survives with `before`, when its own estimate is this.
  double after(double before, double estimate) const;
  // A guess that was expected to survive so likely did, or did not.
  void observe(double survival, bool is_right);

  double power() const { return power_; }

 private:
  double power_ = 1.0;
};

}  // namespace kvasir::spec
