#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace kvasir {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "kvasir: internal error: CHECK(%s) failed at %s:%d\n", expression, file, line);
  std::abort();
}

}  // namespace kvasir
