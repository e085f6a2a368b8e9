// Everything that all connections of a server share.
#pragma once

#include <atomic>

#include "server/http/admission.h"
#include "server/http/connection_counter.h"
#include "server/http/cors.h"
#include "server/http/event.h"
#include "server/http/host_check.h"
#include "server/http/router.h"
#include "server/http/upgrade.h"
#include "server/id_source.h"
#include "server/limits.h"
#include "server/observe/access_log.h"
#include "server/observe/metrics.h"
#include "server/observe/request_log.h"
#include "server/request_memory.h"

namespace kvasir::server::observe {
class Tracer;
}

namespace kvasir::server::http {

// Outlives them.
struct SessionContext {
  const Limits& limits;
  const Router& router;
  Admission* admission;  // null: everybody may ask
  const Cors& cors;
  const HostCheck& hosts;
  IdSource& ids;
  observe::ServerMetrics& metrics;
  RequestMemory& memory;
  ConnectionCounter& connections;
  observe::AccessLog* access_log;     // null: none
  const observe::RequestLog& request_log;
  observe::Tracer* tracer;            // null: nothing is traced
  const Upgrade& upgrade;             // what a connection may become
  const EventEncoding& events;        // of streams over HTTP
  const std::atomic<bool>& draining;  // answers close their connections from now on
};

}  // namespace kvasir::server::http
