// The features that a target region (kernels/target_region.h) of each of ARM's instruction sets may use. NEON
// itself every 64-bit ARM has: it needs no region.
#pragma once

#include "kernels/target_region.h"

#define KVASIR_TARGET_DOTPROD ("arch=armv8.2-a+dotprod")
#define KVASIR_TARGET_I8MM ("arch=armv8.2-a+dotprod+i8mm")
