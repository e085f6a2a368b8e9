// Brackets around code that may use an instruction set this build does not assume.
//
// Only what is defined between the brackets is compiled for `features`, so they go after every #include: a
// header's inline function compiled for AVX-512 could otherwise be the copy the linker keeps for all callers,
// and the program would die on a baseline machine. For the same reason they hold no std template.
#pragma once

#define KVASIR_PRAGMA(text) _Pragma(#text)

#ifdef __clang__
#define KVASIR_TARGET_BEGIN(features) \
  KVASIR_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define KVASIR_TARGET_END _Pragma("clang attribute pop")
#else
// GCC 12 warns about the deliberately undefined register inside its own AVX-512 intrinsics (its bug 105593).
#define KVASIR_TARGET_BEGIN(features)                        \
  _Pragma("GCC push_options") _Pragma("GCC diagnostic push") \
      _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")  \
          _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"") KVASIR_PRAGMA(GCC target features)
#define KVASIR_TARGET_END _Pragma("GCC diagnostic pop") _Pragma("GCC pop_options")
#endif
