// Files of requests and of their answers, a line of JSON each.
#pragma once

#include <cstdint>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "kvasir/result.h"
#include "server/http/message.h"
#include "store/file_lock.h"

namespace kvasir::cli {

// {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}} as OpenAI's batches have
// it, or a body alone: with `messages` a chat, with `prompt` a completion, with `input` embeddings; its
// number is its name then.
struct BatchRequest {
  std::string custom_id;
  server::http::Request request;
};

// Line `number`, counted from 1. `default_max_tokens` (0: none) goes into bodies that set no limit. Errors:
// kBadFile naming what is wrong.
Result<BatchRequest> parse_batch_line(const std::string& line, std::int64_t number,
                                      std::int32_t default_max_tokens);

// The answers of a run, which a later one may go on with.
class BatchOutput {
 public:
  // With `resume` what the file has stays, but for a last line that was cut off; else it must be empty or not
  // there. Errors: kUsage (there are answers already, or another process writes some), kBadFile, kMachine.
  static Result<BatchOutput> open(const std::string& path, bool resume);

  // In an earlier run.
  bool has(const std::string& custom_id) const { return answered_.contains(custom_id); }
  // Appends a line and hands it to the system; has() may be asked meanwhile. Error: kMachine.
  Status write(const BatchRequest& request, const server::http::Response& response);

 private:
  explicit BatchOutput(store::FileLock lock) : lock_(std::move(lock)) {}

  store::FileLock lock_;  // on the file itself
  std::string path_;
  std::ofstream file_;
  std::set<std::string> answered_;
};

}  // namespace kvasir::cli
