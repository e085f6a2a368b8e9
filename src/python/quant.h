// The functions that kvasir/quant.py stands on.
#pragma once

#include <nanobind/nanobind.h>

namespace kvasir::python {

void bind_quant(nanobind::module_& module);

}  // namespace kvasir::python
