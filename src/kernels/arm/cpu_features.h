// Which extensions of NEON this processor and operating system offer.
#pragma once

namespace kvasir {

struct ArmFeatures {
  bool dotprod = false;  // SDOT: FEAT_DotProd
  bool i8mm = false;     // the above and SMMLA: FEAT_I8MM
};

// Asks the auxiliary vector that Linux hands to a process. Elsewhere there are none. Thread safe.
ArmFeatures detect_arm_features();

}  // namespace kvasir
