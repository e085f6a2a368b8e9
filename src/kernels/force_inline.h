// Vector primitives live in registers only when they are inlined, at every optimisation level.
#pragma once

#define KVASIR_FORCE_INLINE inline __attribute__((always_inline))
