// A line of a batch's input, and lines of its output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "server/api/api_context.h"
#include "server/api/endpoint.h"

namespace kvasir::server::api {

// Lines run behind all requests that say nothing of their priority, or ask for one that is less than this.
inline constexpr std::int64_t kBatchPriority = 100;

struct BatchLine {
  std::string custom_id;
  std::string body;  // JSON, with a priority of kBatchPriority or more
};

// The endpoint that takes a batch's lines; null: none is at that path.
const Endpoint* batch_endpoint(std::string_view path);
// "/v1/chat/completions, ..."
std::string batch_endpoints_text();

// {"custom_id", "method": "POST", "url", "body": {...}}. Errors (400): what is missing or another than that;
// a url that is not the batch's endpoint.
ApiResult<BatchLine> parse_batch_line(std::string_view line, std::string_view endpoint, const Limits& limits);

// A line that was answered. It ends.
std::string answered_line(const std::string& id, const std::string& custom_id, int status,
                          const std::string& request_id, std::string_view body);
// A line that was never asked.
std::string unasked_line(const std::string& id, const std::string& custom_id, std::string_view code,
                         std::string_view message);

// Takes bytes as they come and gives lines, without empty ones and a byte order mark at the beginning.
//
// Thread safety: none.
class LineFeed {
 public:
  void push(std::string_view bytes) { rest_ += bytes; }
  void end() { has_ended_ = true; }
  bool has_ended() const { return has_ended_; }
  // The next whole line; nothing: more bytes are needed, or it was the last.
  std::optional<std::string> next();
  std::int64_t number() const { return number_; }  // of the line that next() gave, from 1

 private:
  std::string rest_;
  std::size_t taken_ = 0;  // of rest_
  std::int64_t number_ = 0;
  bool has_ended_ = false;
};

}  // namespace kvasir::server::api
