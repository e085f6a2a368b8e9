// Which tools a family of models can call.
#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "kvasir/tool_guide.h"

namespace kvasir::server::api {

// Remembers what was found out last: agents send the same tools again and again.
//
// Thread safety: any thread.
class KnownTools {
 public:
  // Why no grammar of the tool's calls can be made; empty: it can.
  std::string fault_of(std::string_view family, const GuideTool& tool);

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20;

  std::mutex mutex_;                                     // all below
  std::list<std::pair<std::string, std::string>> kept_;  // by family and tool, the last used first
  std::size_t num_bytes_ = 0;
};

}  // namespace kvasir::server::api
