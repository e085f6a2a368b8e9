// The hub's settings in the environment: the variables that its own client reads.
#pragma once

#include <filesystem>
#include <string>

#include "kvasir/result.h"

namespace kvasir::store {

struct HubSettings {
  std::string endpoint;         // HF_ENDPOINT without a slash at its end, else the public hub
  std::string token;            // goes to the endpoint's own host only, and into no message
  bool offline = false;         // HF_HUB_OFFLINE
  std::filesystem::path cache;  // of the hub's own client; empty when no home folder is known
  std::string ca_file;          // SSL_CERT_FILE; empty: the system's

  // HF_TOKEN, else the file HF_TOKEN_PATH, else $HF_HOME/token. Errors: kUsage for an endpoint that is no
  // http or https address, or a token with a character that no header may hold.
  static Result<HubSettings> from_environment();
};

// $HF_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub; empty without
// any.
std::filesystem::path hub_cache_folder();

}  // namespace kvasir::store
