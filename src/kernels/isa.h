// An instruction set: its kernels, and whether this host runs them.
//
// Those of an architecture are in its folder, with a list of them in isas.cc and of its files in sources.cmake.
// A build has the folder of the processor that it is for, and `ref`.
#pragma once

#include <span>

#include "kernels/probe.h"
#include "kernels/table.h"

namespace kvasir::kernels {

using MatmulKernel = void (*)(const MatmulArgs&);

struct Isa {
  KernelTable table;
  const ProbeLoops* probe_loops;
  bool runs_here;
};

// The architecture's, the best first: in <architecture>/isas.cc.
std::span<const Isa> native_isas();

// Those that this host runs, the best first; the last is `ref`.
std::span<const Isa> host_isas();

}  // namespace kvasir::kernels
