// The engine's errors as Python's exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include "kvasir/result.h"

namespace kvasir::python {

namespace nb = nanobind;

// An instance of the class of kvasir/errors.py for its kind.
nb::object exception_of(const Error& error);

[[noreturn]] void raise(const Error& error);

// A UsageError.
[[noreturn]] void raise_usage(std::string message, std::string param = {});

// The value, or the error as an exception.
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) raise(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace kvasir::python
