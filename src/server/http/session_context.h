// What all connections of a server share.
#pragma once

#include <atomic>

#include "server/access_log.h"
#include "server/auth/key_ring.h"
#include "server/http/connection_counter.h"
#include "server/http/cors.h"
#include "server/http/host_check.h"
#include "server/http/router.h"
#include "server/id_source.h"
#include "server/limits.h"
#include "server/metrics.h"
#include "server/request_memory.h"

namespace kvasir::server {

class Tracer;

// Outlives them.
struct SessionContext {
  const Limits& limits;
  const Router& router;
  KeyRing* keys;  // null: everybody may ask
  const Cors& cors;
  const HostCheck& hosts;
  IdSource& ids;
  ServerMetrics& metrics;
  RequestMemory& memory;
  ConnectionCounter& connections;
  AccessLog* access_log;              // null: none
  Tracer* tracer;                     // null: nothing is traced
  const std::atomic<bool>& draining;  // answers close their connections from now on
};

}  // namespace kvasir::server
