// Errors of a template, without the line number that Template puts in front.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "kvasir/result.h"

namespace kvasir::jinja {

// A fault of the template, or of the conversation it was given.
template <class... Args>
std::unexpected<Error> template_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorKind::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

// A limit of the render was reached.
template <class... Args>
std::unexpected<Error> limit_error(fmt::format_string<Args...> format, Args&&... args) {
  return make_error(ErrorKind::kUnmet, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace kvasir::jinja
