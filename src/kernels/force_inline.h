// Vector primitives live in registers only when they are inlined, at every optimisation level.
#pragma once

#define KVASIR_FORCE_INLINE inline __attribute__((always_inline))
// For functions that are better off with a register file of their own.
#define KVASIR_NO_INLINE __attribute__((noinline))
