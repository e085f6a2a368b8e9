#include "cli/build_info.h"

namespace kvasir::cli {

BuildInfo build_info() {
  return {.version = KVASIR_VERSION, .compiler = KVASIR_COMPILER, .build_type = KVASIR_BUILD_TYPE};
}

}  // namespace kvasir::cli
