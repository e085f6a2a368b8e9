// The limits of requests: one line a limit, with the answer to a request beyond it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "kvasir/sampling_params.h"

namespace kvasir::server {

// A refusal reads "<actual> <what>, the limit is <max>" and carries `status`; of a limit without one the
// connection closes instead. `flag` of `kvasir serve` sets it, to at most `most`.
struct Limit {
  std::int64_t max = 0;
  int status = 400;
  std::string_view what;
  std::string_view flag = {};
  std::int64_t most = 0;
};

struct Limits {
  Limit request_line_bytes{8 << 10, 414, "bytes in the request line", "max-request-line-bytes", 256 << 10};
  Limit header_bytes{16 << 10, 431, "bytes of headers", "max-header-bytes", 256 << 10};
  Limit header_count{100, 431, "headers", "max-headers", 1000};
  Limit body_bytes{8 << 20, 413, "bytes in the body", "max-body-bytes", 1 << 30};
  // An upload goes to the store as it comes and takes 3 MiB of the request memory, whatever its size.
  Limit file_bytes{200 << 20, 413, "bytes in the body of a file's upload", "max-file-bytes", 1 << 30};

  Limit json_depth{64, 400, "levels of nested JSON", "max-json-depth", 1024};
  Limit messages{4096, 400, "messages", "max-messages", 1 << 20};
  Limit tools{128, 400, "tools", "max-tools", 4096};
  Limit prompts{128, 400, "prompts in one request", "max-prompts", 1024};
  Limit inputs{2048, 400, "inputs of one embedding request", "max-inputs", 1 << 16};
  Limit n{16, 400, "choices", "max-choices", kMaxChoices};
  Limit top_logprobs{20, 400, "alternatives per token", "max-top-logprobs", kMaxLogprobs};
  Limit stops{16, 400, "stop sequences", "max-stops", kMaxStopStrings};
  Limit stop_bytes{256, 400, "bytes in a stop sequence", "max-stop-bytes", kMaxStopStringBytes};
  Limit logit_bias{1024, 400, "logit biases", "max-logit-biases", kMaxLogitBias};

  Limit channel_requests{64, 429, "requests at a time on one WebSocket", "max-channel-requests", 4096};
  // The first ones at once, then a tenth of them a second. Beyond it the connection closes.
  Limit grpc_resets{500, 0, "gRPC calls of one connection cancelled in 10 s", "max-grpc-resets", 1 << 20};
  Limit connections{4096, 0, "connections", "max-connections", 1 << 20};
  Limit connections_per_address{1024, 0, "connections from one address", "max-connections-per-address",
                                1 << 20};
  // For one stream that its reader does not take. Beyond it the stream is aborted.
  Limit output_buffer_bytes{256 << 10, 0, "bytes waiting for a slow reader", "max-unsent-bytes", 64 << 20};

  // From the first byte of a request; 408. This and idle_timeout may be an eighth longer.
  std::chrono::milliseconds header_timeout{10'000};
  // A body may take this long, and longer only as fast as min_bytes_per_s; 408.
  std::chrono::milliseconds body_timeout{30'000};
  std::chrono::milliseconds idle_timeout{75'000};  // between requests; the connection closes
  // The same for what waits to be sent; the connection aborts.
  std::chrono::milliseconds write_stall_timeout{30'000};
  std::int64_t min_bytes_per_s = 1024;

  bool are_strict = false;  // an answer that may grow beyond the context is refused, not cut
};

// All of them, for the API reference and the flags.
inline constexpr std::array kLimits = {
    &Limits::request_line_bytes,
    &Limits::header_bytes,
    &Limits::header_count,
    &Limits::body_bytes,
    &Limits::file_bytes,
    &Limits::json_depth,
    &Limits::messages,
    &Limits::tools,
    &Limits::prompts,
    &Limits::inputs,
    &Limits::n,
    &Limits::top_logprobs,
    &Limits::stops,
    &Limits::stop_bytes,
    &Limits::logit_bias,
    &Limits::channel_requests,
    &Limits::grpc_resets,
    &Limits::connections,
    &Limits::connections_per_address,
    &Limits::output_buffer_bytes,
};

struct TimeLimit {
  std::chrono::milliseconds Limits::*time;
  std::string_view what;
  std::string_view answer;
  std::string_view flag;  // of `kvasir serve`, in seconds
};
inline constexpr std::array kTimeLimits = {
    TimeLimit{&Limits::header_timeout, "from the first byte of a request to the end of its headers", "408",
              "header-timeout"},
    TimeLimit{&Limits::body_timeout, "for a body, and longer as long as it comes fast enough", "408",
              "body-timeout"},
    TimeLimit{&Limits::idle_timeout, "between requests of a connection", "the connection closes",
              "idle-timeout"},
    TimeLimit{&Limits::write_stall_timeout,
              "for what waits to be sent, and longer as long as it is taken fast enough",
              "the connection aborts", "write-stall-timeout"},
};

}  // namespace kvasir::server
