#include "cli/number_range.h"

#include <cmath>
#include <cstdlib>

namespace kvasir::cli {

CLI::Validator finite_number() {
  const auto check = [](std::string& text) -> std::string {
    char* end = nullptr;
    const float value = std::strtof(text.c_str(), &end);
    if (!text.empty() && end == text.c_str() + text.size() && std::isfinite(value)) return {};
    return fmt::format("takes a finite number, not '{}'", printable(text));
  };
  return CLI::Validator(check, "");
}

}  // namespace kvasir::cli
