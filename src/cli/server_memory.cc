#include "cli/server_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/machine.h"
#include "base/units.h"
#include "cli/server_reserve.h"
#include "engine/memory_plan.h"
#include "server/limits.h"
#include "server/request_memory.h"

namespace kvasir::cli {
namespace {

constexpr std::int64_t kAdapterBytes = std::int64_t{256} << 20;  // where folders of adapters are given
constexpr std::int64_t kLeastStateBytes = 16 << 20;

// An eighth of the memory budget unless a flag says how much.
Result<std::int64_t> request_memory_bytes(const std::string& size, std::int64_t budget_bytes,
                                          const server::ServerConfig& config) {
  const server::Limits& limits = config.limits;
  const std::int64_t least_bytes = least_request_memory_bytes(limits, config.grpc_port.has_value());
  if (size.empty()) return std::max(least_bytes, budget_bytes / 8);
  const auto bytes = parse_bytes(size);
  if (bytes && *bytes >= least_bytes) return *bytes;
  return make_error(
      ErrorKind::kUsage,
      bytes
          ? fmt::format("--request-memory must be at least {} with bodies of up to {}, got {}",
                        format_bytes(least_bytes), format_bytes(limits.body_bytes.max), format_bytes(*bytes))
          : "--request-memory: " + bytes.error().message,
      "request_memory");
}

// The bytes that a flag says, at least `least_bytes`.
Result<std::int64_t> size_of_flag(std::string_view flag, const std::string& size, std::int64_t least_bytes) {
  const auto bytes = parse_bytes(size);
  if (bytes && *bytes >= least_bytes) return *bytes;
  return make_error(ErrorKind::kUsage,
                    bytes ? fmt::format("--{} must be at least {}, got {}", flag, format_bytes(least_bytes), format_bytes(*bytes))
                          : fmt::format("--{}: {}", flag, bytes.error().message),
                    std::string(flag));
}

// The usual size, or a part of a small budget, unless a flag says how much.
Result<std::int64_t> part_of_budget(std::string_view flag, const std::string& size, std::int64_t usual_bytes,
                                    std::int64_t small_bytes) {
  constexpr std::int64_t kLeast = 1 << 20;
  if (size.empty()) return std::max(kLeast, std::min(usual_bytes, small_bytes));
  return size_of_flag(flag, size, kLeast);
}

}  // namespace

Status set_memory_aside(const ServerMemoryOptions& options, std::int64_t file_bytes, server::ServerConfig& server,
                        EngineConfig& config) {
  if (config.memory_bytes == 0) config.memory_bytes = default_memory_bytes(file_bytes, available_memory_bytes());
  KVASIR_TRY(config.reserved_bytes,
             request_memory_bytes(options.request_memory, config.memory_bytes, server));
  if (!options.state_bytes.empty()) {
    KVASIR_TRY(server.state_bytes, size_of_flag("state-bytes", options.state_bytes, kLeastStateBytes));
  }
  server.stored_memory_bytes = stored_memory_bytes(config.reserved_bytes);
  config.reserved_bytes += server.stored_memory_bytes;
  server.memory_bytes = config.memory_bytes;
  server.request_memory_bytes = config.reserved_bytes - server.stored_memory_bytes;
  KVASIR_TRY(config.guide_memory_bytes, part_of_budget("guide-memory", options.guide_memory, EngineConfig{}.guide_memory_bytes,
                                                       config.memory_bytes / 16));
  config.reserved_bytes += config.guide_memory_bytes;
  if (!server.adapter_folders.empty() || !options.adapter_memory.empty()) {
    KVASIR_TRY(config.adapter_memory_bytes,
               part_of_budget("adapter-memory", options.adapter_memory, kAdapterBytes, config.memory_bytes / 8));
  }
  return {};
}

void fit_connections(server::ServerConfig& config, Logger& logger) {
  server::Limits& limits = config.limits;
  const std::int64_t all_bytes = config.request_memory_bytes;
  const std::int64_t grpc_bytes = config.grpc_port ? server::grpc_bytes(all_bytes) : 0;
  const std::int64_t room_bytes = all_bytes - grpc_bytes - largest_body_bytes(limits);
  const std::int64_t most = room_bytes /
                            server::connection_bytes(limits, !config.tls_certificate_file.empty());
  if (most >= limits.connections.max) return;
  logger.info("{} of request memory are enough for {} connections at a time beside a large body",
              format_bytes(all_bytes), most);
  limits.connections.max = most;
}

}  // namespace kvasir::cli
