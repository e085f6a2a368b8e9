// Facts about this binary: version, compiler, flags.
#pragma once

#include <string>

namespace kvasir::cli {

struct BuildInfo {
  std::string version;     // "0.1.0"
  std::string compiler;    // "GCC 12.2.0"
  std::string build_type;  // "Release"
};

BuildInfo build_info();

}  // namespace kvasir::cli
