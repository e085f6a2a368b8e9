// What of a server's configuration can be wrong before its models are loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kvasir/result.h"
#include "server/limits.h"
#include "server/server.h"
#include "server/stored/object_store.h"

namespace kvasir::server {

// Errors: kUsage.
Status check_config(const ServerConfig& config);
// The files that its flags name, and the folder of stored objects, which is made. Errors name the flag.
Status check_files(const ServerConfig& config);
// Whether the port can be listened at. Error: names the flag.
Status check_port(const std::string& host, std::uint16_t port, std::string_view flag, const Limits& limits);

// Of stored responses, files and batches; those that a server before left unfinished have failed.
Result<std::unique_ptr<stored::ObjectStore>> open_store(const ServerConfig& config);

}  // namespace kvasir::server
