#include "jinja/render_options.h"

namespace kvasir::jinja {

std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

}  // namespace kvasir::jinja
