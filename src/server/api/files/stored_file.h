// Files that clients upload, and those that batches write.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/stored/object_store.h"

namespace kvasir::server::api {

// A file's purpose is its object's `parent`.
inline constexpr std::string_view kBatchPurpose = "batch";
inline constexpr std::string_view kBatchOutputPurpose = "batch_output";
// Content is stored in parts of at most so many bytes.
inline constexpr std::int64_t kFilePartBytes = 1 << 20;

struct FileFacts {
  std::string id;
  std::string name;
  std::string_view purpose;
  std::int64_t bytes = 0;
  std::int64_t created_s = 0;
  std::int64_t expires_s = 0;  // 0: never
};
// As OpenAI's clients read it.
std::string file_json(const FileFacts& facts);
stored::Object file_object(const FileFacts& facts, std::string owner);

// Error: 404.
ApiResult<stored::Object> find_file(stored::ObjectStore& store, const std::string& owner, const std::string& id);
std::vector<stored::Part> parts_of(std::string_view content);

}  // namespace kvasir::server::api
