#include "python/python_error.h"

#include <nanobind/stl/string.h>

#include <string_view>

namespace kvasir::python {
namespace {

const char* class_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "UsageError";
    case ErrorKind::kBadFile:
    case ErrorKind::kNotFound:
      return "ModelError";
    case ErrorKind::kUnmet:
      return "LimitError";
    case ErrorKind::kMachine:
      return "MachineError";
    case ErrorKind::kUnavailable:
    case ErrorKind::kCancelled:
      return "UnavailableError";
    case ErrorKind::kInternal:
      break;
  }
  return "InternalError";
}

}  // namespace

nb::object exception_of(const Error& error) {
  const nb::module_ errors = nb::module_::import_("kvasir.errors");
  return errors.attr(class_name(error.kind))(error.message, error.param, error.retry_after_s);
}

void raise(const Error& error) {
  const nb::object exception = exception_of(error);
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

void raise_usage(std::string message, std::string param) {
  raise({.kind = ErrorKind::kUsage, .message = std::move(message), .param = std::move(param)});
}

}  // namespace kvasir::python
