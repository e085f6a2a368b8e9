// CHECK stops the program when our own logic is broken. Nothing reachable from a file or a request
// may hit one: those paths return Error.
#pragma once

namespace kvasir {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace kvasir

#define CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::kvasir::check_failed(#expression, __FILE__, __LINE__))
#ifdef NDEBUG
#define DCHECK(expression) static_cast<void>(0)
#else
#define DCHECK(expression) CHECK(expression)
#endif
