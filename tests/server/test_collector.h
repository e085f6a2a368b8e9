// A collector of spans on a free loopback port, which answers as a test wants it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/server.h"

namespace kvasir::server {

// A span as it came.
struct ReceivedSpan {
  std::string trace_id, span_id, parent_span_id;  // hex digits
  std::string trace_state;
  std::string name;
  int kind = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::map<std::string, std::string> attributes;  // numbers in decimal, lists between commas
  int status = 0;
  std::uint32_t flags = 0;
};

// Takes one connection after the other.
class TestCollector {
 public:
  struct Reply {
    int status = 200;
    std::string headers;  // "Name: value\r\n"
    std::string body;
    std::chrono::milliseconds delay{0};
  };
  struct Post {
    std::string head;  // request line and headers
    std::string body;
  };

  // Takes everything.
  TestCollector() : TestCollector(std::vector<Reply>(1)) {}
  // The first replies, in their order; the last goes on.
  explicit TestCollector(std::vector<Reply> replies);
  ~TestCollector();
  TestCollector(const TestCollector&) = delete;
  TestCollector& operator=(const TestCollector&) = delete;

  std::uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Those so far, once there are so many or 5 s are over.
  std::vector<Post> posts(std::size_t count);
  // The spans of all posts, once there are so many or 5 s are over.
  std::vector<ReceivedSpan> spans(std::size_t count);

 private:
  void serve();
  void answer(int connection);

  const std::vector<Reply> replies_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Post> posts_;  // guarded
  bool closing_ = false;     // guarded
  std::thread thread_;
};

// The settings of a server whose spans it gets as soon as there are some.
ServerConfig traced_to(const TestCollector& collector);

// The spans of an ExportTraceServiceRequest.
std::vector<ReceivedSpan> read_spans(std::string_view body);
// The attributes of its resource.
std::map<std::string, std::string> read_resource(std::string_view body);

}  // namespace kvasir::server
