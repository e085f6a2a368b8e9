// Vector primitives live in registers only when they are inlined, at every optimisation level.
#pragma once

#define KVASIR_FORCE_INLINE inline __attribute__((always_inline))
// What is better off with a register file of its own.
#define KVASIR_NO_INLINE __attribute__((noinline))
