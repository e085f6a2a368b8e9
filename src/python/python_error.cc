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
  // No code of Python's runs here: an interpreter that ends takes its threads away where they run some.
  const nb::module_ errors = nb::module_::import_("kvasir.errors");
  nb::object exception = errors.attr(class_name(error.kind))(error.message);
  exception.attr("param") = error.param;
  exception.attr("retry_after_s") = error.retry_after_s;
  return exception;
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
