// The limits of this host: the rates that kernels are compared with.
#pragma once

namespace kvasir::bench {

struct HostLimits {
  double int8_macs_per_second = 0.0;   // vpdpbusd on zmm registers; 0 where the host lacks it
  double read_bytes_per_second = 0.0;  // from memory, far larger than any cache
};

HostLimits measure_host_limits(int num_threads);

}  // namespace kvasir::bench
