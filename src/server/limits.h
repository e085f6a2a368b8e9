// What a request may ask for before it is refused: one line a limit, with the answer it gets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace kvasir::server {

// A refusal reads "<what>: <actual>, the limit is <max>" and carries `status`.
struct Limit {
  std::int64_t max = 0;
  int status = 400;
  std::string_view what;
};

struct Limits {
  Limit request_line_bytes{8 << 10, 414, "bytes in the request line"};
  Limit header_bytes{16 << 10, 431, "bytes of headers"};
  Limit header_count{100, 431, "headers"};
  Limit body_bytes{8 << 20, 413, "bytes in the body"};

  Limit json_depth{64, 400, "levels of nested JSON"};
  Limit messages{4096, 400, "messages"};
  Limit tools{128, 400, "tools"};
  Limit prompts{128, 400, "prompts in one request"};
  Limit n{16, 400, "choices"};
  Limit top_logprobs{20, 400, "alternatives per token"};
  Limit stops{16, 400, "stop sequences"};
  Limit stop_bytes{256, 400, "bytes in a stop sequence"};
  Limit logit_bias{1024, 400, "logit biases"};

  Limit connections{4096, 503, "connections"};
  // Of one stream that its reader does not take; beyond it the stream is aborted.
  Limit output_buffer_bytes{256 << 10, 503, "bytes waiting for a slow reader"};

  std::chrono::milliseconds header_timeout{10'000};  // from the first byte of a request; 408
  // A body may take this long, and longer only as fast as body_min_bytes_per_s; 408.
  std::chrono::milliseconds body_timeout{30'000};
  std::int64_t body_min_bytes_per_s = 1024;
  std::chrono::milliseconds idle_timeout{75'000};         // between requests; the connection closes
  std::chrono::milliseconds write_stall_timeout{30'000};  // without progress; the connection aborts
};

}  // namespace kvasir::server
