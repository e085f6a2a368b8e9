#include "server/observe/kv_usage_json.h"

namespace kvasir::server::observe {

void member_kv_usage(JsonWriter& json, const KvUsage& use) {
  if (use.is_downgraded) json.member("kv_downgraded", true);
  if (use.is_shadow) json.member("kv_shadow", true);
  if (use.full_bytes == 0) return;
  json.key("kv").begin_object().member("bytes", use.bytes).member("share", use.share());
  json.member("dropped", use.num_dropped_cells).member("dropped_share", use.dropped_share()).end_object();
}

}  // namespace kvasir::server::observe
